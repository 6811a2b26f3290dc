/**
 * One view of a terminal: what happens goes in, what to do comes out; no DOM, no terminal,
 * no timers. The shell around it (`main.ts`) feeds it and carries out its instructions.
 *
 * ```
 *  connecting ──open──▶ greeting ──attached──▶ attached ──close──▶ waiting ──(delay)──▶ connecting
 *       │                  │                       │                  │
 *       └──────────────────┴───────close───────────┴──────────────────┴──▶ stopped (Reconnect)
 *                                                                          over (new link)
 * ```
 *
 * Frames of an older generation, and anything that comes while no connection is attached,
 * are dropped: they are about a shell that is gone. Nothing is sent but what a person did,
 * heartbeats, and the asking for a snapshot after a hole.
 */

import type {
  Attached,
  ClientFrame,
  Hello,
  Kind,
  Limits,
  Role,
  ServerFrame,
  SessionLabel,
  SessionRow,
  Snapshot,
  Status,
} from "./frames.ts";
import { Close } from "./frames.ts";
import { Lease, utf8Length } from "./lease.ts";
import type { Notice, NoticeId } from "./notices.ts";
import { fromServer, notice } from "./notices.ts";
import { afterClose } from "./retry.ts";
import { Sequence } from "./sequence.ts";

export type Connection = "connecting" | "attached" | "waiting" | "stopped" | "over";

export type Instruction =
  | { readonly kind: "connect"; readonly hello: Hello }
  | { readonly kind: "connect-later"; readonly delay_ms: number }
  | { readonly kind: "disconnect" }
  | { readonly kind: "send"; readonly frame: ClientFrame; readonly generation: number }
  | { readonly kind: "paint"; readonly snapshot: Snapshot }
  | { readonly kind: "write"; readonly data: Uint8Array; readonly sequence: number }
  | { readonly kind: "notice"; readonly notice: Notice }
  | { readonly kind: "withdraw"; readonly id: NoticeId }
  | { readonly kind: "ready"; readonly attached: Attached }
  | { readonly kind: "sessions"; readonly rows: readonly SessionRow[] }
  | { readonly kind: "open-view"; readonly session: string; readonly ticket: string }
  | { readonly kind: "focus-terminal" }
  | { readonly kind: "dispose" };

/** Heartbeats the server may miss before the connection counts as lost. */
const MISSED_BEATS = 3;
const NOBODY: SessionLabel = { name: "", program: "", node: "" };
const DEFAULTS: Limits = {
  scrollback_lines: 10_000,
  max_input_bytes: 65_536,
  heartbeat_s: 15,
  grace_s: 15,
  rows: 40,
  cols: 160,
  window_bytes: 262_144,
};
/** The part of the window after which the page says how far it has shown. */
const ACK_PART = 8;

export class View {
  readonly #out: Instruction[] = [];
  readonly #sequence = new Sequence();
  readonly #lease = new Lease();
  #connection: Connection = "connecting";
  #role: Role = "readonly";
  #reason = "";
  #kind: Kind = "shared";
  #session: SessionLabel = NOBODY;
  #settings: Limits = DEFAULTS;
  #generation = 0;
  #resume = "";
  #status: Status | null = null;
  #ahead = 0;
  #failures = 0;
  #attachedOnce = false;
  #saidTruncated = false;
  #heardAt = 0;
  #beatAt = 0;
  #acknowledged = 0;

  get connection(): Connection {
    return this.#connection;
  }

  get role(): Role {
    return this.#role;
  }

  get reason(): string {
    return this.#reason;
  }

  get kind(): Kind {
    return this.#kind;
  }

  get session(): SessionLabel {
    return this.#session;
  }

  get settings(): Limits {
    return this.#settings;
  }

  get generation(): number {
    return this.#generation;
  }

  /** The proof to come back with; empty when there is none. */
  get resume(): string {
    return this.#resume;
  }

  get status(): Status | null {
    return this.#status;
  }

  get ahead(): number {
    return this.#ahead;
  }

  get lease(): Lease {
    return this.#lease;
  }

  get attachedOnce(): boolean {
    return this.#attachedOnce;
  }

  get #attached(): boolean {
    return this.#connection === "attached";
  }

  get #controls(): boolean {
    return this.#attached && this.#role === "controller";
  }

  /** True while there is a model's operation that this view could take over. */
  get canTakeOver(): boolean {
    return this.#controls && this.#status?.takeover != null && !this.#lease.open;
  }

  /** True while this view holds the lease. */
  get canInterrupt(): boolean {
    return this.#controls && this.#lease.state === "held";
  }

  /** True while this view may ask for a reset. */
  get canReset(): boolean {
    return this.#controls && this.#kind === "shared";
  }

  /** True while pressing Reconnect could help. */
  get canReconnect(): boolean {
    return this.#connection !== "over" && this.#connection !== "connecting" && this.#resume !== "";
  }

  /** True while what is typed may reach the terminal. */
  get canType(): boolean {
    return this.#lease.open || (this.#controls && this.#idle);
  }

  get #idle(): boolean {
    return this.#status !== null && this.#status.queue === "ready" && this.#status.holder === "";
  }

  /** Begin with a ticket, or with the proof kept from before a reload. */
  start(hello: Hello): Instruction[] {
    if ("resume" in hello) this.#resume = hello.resume;
    this.#connect(hello);
    return this.#take();
  }

  /** The delay of a `connect-later` is over. */
  due(): Instruction[] {
    if (this.#connection === "waiting") this.#connect({ resume: this.#resume });
    return this.#take();
  }

  /** A frame arrived at `now` (milliseconds, any origin). */
  frame(frame: ServerFrame, now: number): Instruction[] {
    this.#heardAt = now;
    if (frame.type === "attached") this.#attach(frame, now);
    else if (this.#attached && frame.generation >= this.#generation) this.#live(frame);
    else if (frame.type === "error") this.#say(fromServer(frame.reason, frame.message));
    return this.#take();
  }

  /** The connection sent something that is no frame. */
  malformed(): Instruction[] {
    this.#say(notice("protocol"));
    this.#out.push({ kind: "disconnect" });
    this.#lose();
    this.#connection = "stopped";
    return this.#take();
  }

  /** The connection ended. */
  closed(code: number): Instruction[] {
    if (this.#connection !== "connecting" && this.#connection !== "attached") return this.#take();
    const wasAttached = this.#attached;
    this.#lose();
    if (code === Close.DISPOSED) {
      this.#lease.revoke();
      this.#status = null;
      this.#say(notice("disposed"));
      this.#out.push({ kind: "dispose" });
      this.#connection = "over";
      return this.#take();
    }
    if (wasAttached) this.#failures = 0;
    const next = afterClose(code, this.#failures, this.#resume !== "", this.#role);
    this.#failures += 1;
    if (code === Close.RESET) this.#giveUpLease();
    else if (code === Close.SLOW) this.#say(notice("slow"));
    else if (code === Close.VIOLATION || code === Close.INVALID_UTF8 || code === Close.TOO_BIG) {
      this.#say(notice("protocol"));
    } else if (wasAttached && next.kind !== "over") this.#say(notice("lost"));
    if (next.kind === "retry") {
      this.#connection = "waiting";
      this.#out.push({ kind: "connect-later", delay_ms: next.delay_ms });
    } else if (next.kind === "wait") {
      this.#connection = "stopped";
    } else {
      this.#giveUpLease();
      this.#connection = "over";
      if (code === Close.REPLACED) this.#say(notice("replaced"));
      else this.#say(notice(this.#attachedOnce ? "ended" : "refused"));
    }
    return this.#take();
  }

  /** The person typed or pasted. */
  typed(text: string): Instruction[] {
    if (text === "") return this.#take();
    const bytes = utf8Length(text);
    if (bytes < 0) this.#say(notice("malformed"));
    else if (this.#attached && this.#role !== "controller") this.#say(notice("readonly"));
    else if (this.#lease.open) this.#typedUnderLease(text, bytes);
    else if (!this.#attached) this.#say(notice("offline"));
    else if (!this.#idle || this.#lease.state === "closing") this.#refuseKey();
    else if (bytes > this.#settings.max_input_bytes) this.#say(notice("too-long"));
    else {
      this.#lease.ask(bytes);
      this.#send({ type: "human.begin", data: text });
    }
    return this.#take();
  }

  /** The person pressed Take over input. */
  takeOver(): Instruction[] {
    const target = this.#status?.takeover;
    if (this.canTakeOver && target != null) {
      this.#withdraw("busy");
      this.#lease.ask(0);
      this.#send({ type: "human.takeover", target });
      this.#out.push({ kind: "focus-terminal" });
    }
    return this.#take();
  }

  /** The person pressed Interrupt input. */
  interrupt(): Instruction[] {
    if (this.canInterrupt) {
      if (this.#lease.interrupt()) this.#say(notice("discarded"));
      this.#send({ type: "human.cancel" });
      this.#out.push({ kind: "focus-terminal" });
    }
    return this.#take();
  }

  /** The person confirmed a reset. */
  reset(): Instruction[] {
    if (this.canReset) this.#send({ type: "terminal.reset", confirmed: true });
    return this.#take();
  }

  /** The person pressed Reconnect. */
  reconnect(): Instruction[] {
    if (!this.canReconnect) return this.#take();
    if (this.#attached) {
      this.#out.push({ kind: "disconnect" });
      this.#lose();
    }
    this.#failures = 0;
    this.#withdraw("protocol");
    this.#connect({ resume: this.#resume });
    return this.#take();
  }

  /** The person wants to watch a session of the list. */
  watch(session: string): Instruction[] {
    if (this.#attached) this.#send({ type: "watch", session });
    return this.#take();
  }

  /** Everything of this generation up to `sequence` has been painted. */
  painted(sequence: number, generation: number): Instruction[] {
    if (this.#attached && generation === this.#generation) this.#acknowledge(sequence);
    return this.#take();
  }

  /** Time passes; called about every second. */
  tick(now: number): Instruction[] {
    if (!this.#attached) return this.#take();
    const beat_ms = this.#settings.heartbeat_s * 1000;
    if (now - this.#heardAt > beat_ms * MISSED_BEATS) {
      this.#out.push({ kind: "disconnect" });
      return this.closed(Close.TRANSPORT);
    }
    if (now - this.#beatAt >= beat_ms) {
      this.#beatAt = now;
      this.#send({ type: "heartbeat" });
    }
    return this.#take();
  }

  #attach(frame: Attached, now: number): void {
    if (this.#connection !== "connecting") return;
    const newShell = this.#attachedOnce && frame.generation !== this.#generation;
    this.#connection = "attached";
    this.#failures = 0;
    this.#beatAt = now;
    this.#generation = frame.generation;
    this.#role = frame.role;
    this.#reason = frame.reason;
    this.#kind = frame.kind;
    this.#session = frame.session;
    this.#settings = frame.settings;
    if (frame.resume !== "") this.#resume = frame.resume;
    this.#status = null;
    this.#ahead = 0;
    this.#saidTruncated = false;
    this.#sequence.skip();
    this.#acknowledged = 0;
    this.#withdraw("lost");
    this.#withdraw("offline");
    this.#withdraw("readonly");
    if (newShell) {
      this.#giveUpLease();
      this.#say(notice("reset"));
    }
    if (frame.role !== "controller") this.#giveUpLease();
    this.#withdraw("occupied");
    this.#withdraw("late");
    if (frame.reason === "occupied") this.#say(notice("occupied"));
    if (frame.reason === "invalid-resume") this.#say(notice("late"));
    this.#attachedOnce = true;
    this.#out.push({ kind: "ready", attached: frame });
  }

  #live(frame: Exclude<ServerFrame, Attached>): void {
    switch (frame.type) {
      case "snapshot":
        this.#sequence.snapshot(frame.sequence);
        this.#out.push({ kind: "paint", snapshot: frame });
        if (frame.truncated && !this.#saidTruncated) {
          this.#saidTruncated = true;
          this.#say(notice("truncated"));
        }
        break;
      case "output": {
        const verdict = this.#sequence.output(frame.sequence, frame.data);
        if (verdict.kind === "paint") this.#out.push({
            kind: "write",
            data: verdict.data,
            sequence: frame.sequence,
          });
        else {
          if (verdict.kind === "ask") this.#send({ type: "snapshot" });
          // What is not painted takes no room in the window either.
          this.#acknowledge(frame.sequence);
        }
        break;
      }
      case "status":
        this.#standing(frame);
        break;
      case "human.granted": {
        const { send, discarded } = this.#lease.grant(frame.lease);
        this.#ahead = 0;
        this.#withdraw("busy");
        this.#withdraw("idle-only");
        if (discarded) this.#say(notice("discarded"));
        if (send !== "") this.#send({ type: "human.input", data: send });
        break;
      }
      case "human.queued":
        this.#ahead = frame.ahead;
        break;
      case "human.revoked":
        this.#ahead = 0;
        this.#giveUpLease();
        break;
      case "error":
        this.#say(fromServer(frame.reason, frame.message));
        break;
      case "sessions":
        this.#out.push({ kind: "sessions", rows: frame.sessions });
        break;
      case "watch":
        this.#out.push({ kind: "open-view", session: frame.session, ticket: frame.ticket });
        break;
      case "heartbeat":
        break;
    }
  }

  #acknowledge(sequence: number): void {
    const fresh = sequence - this.#acknowledged;
    // Rarely: a key's echo is not worth a frame of its own, and less than the window waits.
    if (fresh > 0 && fresh >= this.#settings.window_bytes / ACK_PART) {
      this.#acknowledged = sequence;
      this.#send({ type: "ack", sequence });
    }
  }

  #standing(status: Status): void {
    this.#status = status;
    this.#ahead = status.ahead;
    // A lease that outlived its connection is granted anew while a person still holds it.
    const over = this.#lease.state === "lost" || this.#lease.state === "closing";
    if (over && status.holder !== "human") this.#giveUpLease();
    if (status.takeover === null) this.#withdraw("busy");
  }

  #typedUnderLease(text: string, bytes: number): void {
    if (this.#lease.usedBytes + bytes > this.#settings.max_input_bytes) {
      this.#say(notice("too-long"));
      return;
    }
    const now = this.#lease.type(text, bytes);
    if (now !== null) this.#send({ type: "human.input", data: now });
  }

  #refuseKey(): void {
    const model = this.#status?.holder === "model-send";
    this.#say(notice(model ? "busy" : "idle-only"));
  }

  #giveUpLease(): void {
    if (this.#lease.revoke()) this.#say(notice("discarded"));
  }

  #connect(hello: Hello): void {
    this.#connection = "connecting";
    this.#out.push({ kind: "connect", hello });
  }

  #lose(): void {
    this.#lease.disconnect();
    this.#ahead = 0;
  }

  #say(said: Notice): void {
    this.#out.push({ kind: "notice", notice: said });
  }

  #withdraw(id: NoticeId): void {
    this.#out.push({ kind: "withdraw", id });
  }

  #send(frame: ClientFrame): void {
    this.#out.push({ kind: "send", frame, generation: this.#generation });
  }

  #take(): Instruction[] {
    return this.#out.splice(0);
  }
}
