import assert from "node:assert/strict";
import { test } from "node:test";

import type { ClientFrame, ServerFrame } from "../src/frames.ts";
import type { Instruction } from "../src/view.ts";
import { View } from "../src/view.ts";
import { span, statusParts } from "../src/words.ts";

const SETTINGS = {
  scrollback_lines: 100,
  max_input_bytes: 16,
  heartbeat_s: 5,
  grace_s: 15,
  rows: 40,
  cols: 160,
  window_bytes: 1024,
};

/** A view with what it was told to do, as short words. */
class Played {
  readonly view = new View();
  now = 0;

  constructor() {
    this.view.start({ ticket: "t" });
  }

  attach(fields: Partial<Extract<ServerFrame, { type: "attached" }>> = {}): string[] {
    return this.frame({
      type: "attached",
      generation: 1,
      role: "controller",
      kind: "shared",
      reason: "",
      resume: "proof-1",
      session: { name: "shared", program: "bash", node: "n1" },
      settings: SETTINGS,
      ...fields,
    });
  }

  snapshot(sequence = 0, generation = 1): string[] {
    const data = new Uint8Array();
    return this.frame({
      type: "snapshot",
      generation,
      sequence,
      data,
      rows: 40,
      cols: 160,
      truncated: false,
    });
  }

  status(fields: Partial<Extract<ServerFrame, { type: "status" }>> = {}): string[] {
    return this.frame({
      type: "status",
      generation: 1,
      process: "running",
      queue: "ready",
      holder: "",
      pending: 0,
      ahead: 0,
      takeover: null,
      sequence: 0,
      ...fields,
    });
  }

  output(sequence: number, text: string, generation = 1): string[] {
    return this.frame({
      type: "output",
      generation,
      sequence,
      data: new TextEncoder().encode(text),
    });
  }

  granted(lease = 1): string[] {
    return this.frame({ type: "human.granted", generation: 1, lease });
  }

  frame(frame: ServerFrame): string[] {
    return words(this.view.frame(frame, this.now));
  }
}

function words(instructions: readonly Instruction[]): string[] {
  return instructions.flatMap((instruction) => {
    if (instruction.kind === "send") return [`send ${frameWords(instruction.frame)}`];
    if (instruction.kind === "notice") return [`notice ${instruction.notice.id}`];
    if (instruction.kind === "withdraw") return [];
    if (instruction.kind === "write") return [`write ${new TextDecoder().decode(instruction.data)}`];
    if (instruction.kind === "connect") return [`connect ${JSON.stringify(instruction.hello)}`];
    if (instruction.kind === "connect-later") return [`later ${instruction.delay_ms}`];
    return [instruction.kind];
  });
}

function frameWords(frame: ClientFrame): string {
  const { type, ...rest } = frame;
  return [type, ...Object.values(rest)].join(" ");
}

function idle(): Played {
  const played = new Played();
  played.attach();
  played.snapshot();
  played.status();
  return played;
}

function typing(): Played {
  const played = idle();
  played.view.typed("e");
  played.granted();
  played.status({ queue: "busy", holder: "human" });
  return played;
}

test("the first key at an idle prompt travels with the request, later ones wait, once", () => {
  const played = idle();
  assert.deepEqual(words(played.view.typed("e")), ["send human.begin e"]);
  assert.deepEqual(words(played.view.typed("c")), []);
  assert.deepEqual(words(played.view.typed("h")), []);
  assert.deepEqual(played.granted(), ["send human.input ch"]);
  assert.deepEqual(words(played.view.typed("o")), ["send human.input o"]);
});

test("while a model works typing is ignored, for ever, and the notice says what helps", () => {
  const played = idle();
  played.status({ queue: "busy", holder: "model-send", takeover: 7 });
  assert.deepEqual(words(played.view.typed("rm -rf\r")), ["notice busy"]);
  assert.deepEqual(played.status(), []);
  assert.deepEqual(words(played.view.typed("x")), ["send human.begin x"]);
});

test("take over sends the exact target and no text, and typing begins with the grant", () => {
  const played = idle();
  assert.equal(played.view.canTakeOver, false);
  played.status({ queue: "busy", holder: "model-send", takeover: 7 });
  assert.equal(played.view.canTakeOver, true);
  assert.deepEqual(words(played.view.takeOver()), ["send human.takeover 7", "focus-terminal"]);
  assert.equal(played.view.canTakeOver, false);
  assert.deepEqual(words(played.view.typed("你")), []);
  assert.deepEqual(played.granted(), ["send human.input 你"]);
});

test("a refused take-over gives up what was typed for it, visibly", () => {
  const played = idle();
  played.status({ queue: "busy", holder: "model-send", takeover: 7 });
  played.view.takeOver();
  played.view.typed("y\r");
  assert.deepEqual(played.frame({ type: "human.revoked", generation: 1, reason: "stale" }), [
    "notice discarded",
  ]);
  assert.deepEqual(played.status(), []);
});

test("interrupt needs a granted lease and is no take-over", () => {
  const played = idle();
  assert.deepEqual(words(played.view.interrupt()), []);
  const other = typing();
  assert.equal(other.view.canInterrupt, true);
  assert.deepEqual(words(other.view.interrupt()), ["send human.cancel", "focus-terminal"]);
  assert.equal(other.view.canInterrupt, false);
  assert.deepEqual(words(other.view.typed("x")), ["notice idle-only"]);
  other.status();
  assert.deepEqual(words(other.view.typed("x")), ["send human.begin x"]);
});

test("input over the limit of a lease is not sent, and interrupting still works", () => {
  const played = typing();
  assert.deepEqual(words(played.view.typed("x".repeat(16))), ["notice too-long"]);
  assert.deepEqual(words(played.view.typed("\ud83d")), ["notice malformed"]);
  assert.deepEqual(words(played.view.typed("x".repeat(15))), [`send human.input ${"x".repeat(15)}`]);
  assert.equal(played.view.canInterrupt, true);
});

test("a first paste over the limit asks for nothing", () => {
  assert.deepEqual(words(idle().view.typed("x".repeat(17))), ["notice too-long"]);
});

test("a view that only reads sends nothing", () => {
  const played = new Played();
  assert.deepEqual(played.attach({ role: "readonly", reason: "occupied" }), [
    "notice occupied",
    "ready",
  ]);
  played.snapshot();
  played.status({ queue: "busy", holder: "model-send", takeover: 7 });
  assert.deepEqual(words(played.view.typed("x")), ["notice readonly"]);
  assert.deepEqual(words(played.view.takeOver()), []);
  assert.deepEqual(words(played.view.reset()), []);
  assert.equal(played.view.canReset, false);
});

test("a blocked or ended terminal may be reset by its controller", () => {
  for (const queue of ["blocked", "exited"]) {
    const played = idle();
    played.status({ queue });
    assert.deepEqual(words(played.view.reset()), ["send terminal.reset true"]);
  }
});

test("a short drop heals by itself and repeats nothing", () => {
  const played = typing();
  assert.deepEqual(words(played.view.closed(1006)), ["notice lost", "later 250"]);
  assert.equal(played.view.canInterrupt, false);
  assert.deepEqual(words(played.view.due()), ['connect {"resume":"proof-1"}']);
  played.attach({ resume: "proof-2" });
  played.snapshot();
  assert.deepEqual(played.granted(), []);
  assert.deepEqual(played.status({ queue: "busy", holder: "human" }), []);
  assert.deepEqual(words(played.view.typed("x")), ["send human.input x"]);
});

test("keys typed while away go out under the restored lease only", () => {
  const played = typing();
  played.view.closed(1006);
  assert.deepEqual(words(played.view.typed("x")), []);
  played.view.due();
  played.attach();
  assert.deepEqual(played.granted(), ["send human.input x"]);
});

test("keys typed for a lease that is gone are given up, visibly", () => {
  const played = typing();
  played.view.closed(1006);
  played.view.typed("x");
  played.view.due();
  played.attach();
  assert.deepEqual(played.status(), ["notice discarded"]);
  assert.deepEqual(words(played.view.typed("y")), ["send human.begin y"]);
});

test("coming back as a reader gives up the lease", () => {
  const played = typing();
  played.view.closed(1006);
  played.view.typed("x");
  played.view.due();
  assert.deepEqual(played.attach({ role: "readonly", reason: "invalid-resume" }), [
    "notice discarded",
    "notice late",
    "ready",
  ]);
});

test("without a lease nothing is kept while away", () => {
  const played = idle();
  played.view.closed(1006);
  assert.deepEqual(words(played.view.typed("x")), ["notice offline"]);
});

test("attempts that lead nowhere slow down, then stop until Reconnect", () => {
  const played = idle();
  const delays: string[] = [];
  for (let at = 0; at < 12; at += 1) {
    delays.push(...words(played.view.closed(1006)).filter((word) => word.startsWith("later")));
    played.view.due();
  }
  assert.equal(delays.length, 9);
  assert.equal(played.view.connection, "stopped");
  assert.deepEqual(words(played.view.reconnect()), ['connect {"resume":"proof-1"}']);
});

for (const code of [1007, 1008, 1009]) {
  test(`after ${code} a person has to reconnect`, () => {
    const played = idle();
    assert.deepEqual(words(played.view.closed(code)), ["notice protocol"]);
    assert.deepEqual(words(played.view.due()), []);
    assert.equal(played.view.canReconnect, true);
  });
}

test("disposal clears the screen and what was not sent", () => {
  const played = idle();
  played.view.typed("e");
  played.view.typed("c");
  assert.deepEqual(words(played.view.closed(4002)), ["notice disposed", "dispose"]);
  assert.equal(played.view.lease.hasUnsent, false);
  assert.equal(played.view.canReconnect, false);
});

test("a reset brings the next shell, and nothing of the old one", () => {
  const played = typing();
  assert.deepEqual(words(played.view.closed(4001)), ["later 250"]);
  played.view.due();
  assert.deepEqual(played.attach({ generation: 2 }), ["notice reset", "ready"]);
  played.snapshot(0, 2);
  assert.deepEqual(played.output(3, "old", 1), []);
  assert.deepEqual(played.output(3, "new", 2), ["write new"]);
  const sent = played.view.typed("x");
  assert.deepEqual(words(sent), ["notice idle-only"]);
});

test("an old ticket says that the link is not valid", () => {
  const played = new Played();
  assert.deepEqual(words(played.view.closed(4003)), ["notice refused"]);
  assert.equal(played.view.canReconnect, false);
  assert.deepEqual(statusParts(played.view), ["Read only", "Link not valid"]);
});

test("a hole asks for a snapshot", () => {
  const played = idle();
  assert.deepEqual(played.output(3, "abc"), ["write abc"]);
  assert.deepEqual(played.output(3, "abc"), []);
  assert.deepEqual(played.output(9, "xyz"), ["send snapshot"]);
  assert.deepEqual(played.output(12, "..."), []);
  assert.deepEqual(played.snapshot(12), ["paint"]);
  assert.deepEqual(played.output(13, "!"), ["write !"]);
});

test("what was painted is acknowledged, an eighth of the window at a time", () => {
  const played = idle();
  assert.deepEqual(words(played.view.painted(100, 1)), []);
  assert.deepEqual(words(played.view.painted(128, 1)), ["send ack 128"]);
  assert.deepEqual(words(played.view.painted(200, 1)), []);
  assert.deepEqual(words(played.view.painted(5000, 2)), []);
  assert.deepEqual(words(played.view.painted(5000, 1)), ["send ack 5000"]);
});

test("what is dropped takes no room in the window", () => {
  const played = idle();
  assert.deepEqual(played.output(500, "xyz"), ["send snapshot", "send ack 500"]);
  assert.deepEqual(played.output(900, "xyz"), ["send ack 900"]);
});

test("a view that goes on elsewhere does not fight for its place", () => {
  const played = idle();
  assert.deepEqual(words(played.view.closed(4004)), ["notice replaced"]);
  assert.equal(played.view.canReconnect, false);
});

test("a frame that is none ends the connection until Reconnect", () => {
  const played = idle();
  assert.deepEqual(words(played.view.malformed()), ["notice protocol", "disconnect"]);
  assert.equal(played.view.connection, "stopped");
});

test("heartbeats go out in time, and a silent server counts as gone", () => {
  const played = idle();
  assert.deepEqual(words(played.view.tick(4000)), []);
  assert.deepEqual(words(played.view.tick(5000)), ["send heartbeat"]);
  assert.deepEqual(words(played.view.tick(15_001)), ["disconnect", "notice lost", "later 250"]);
});

test("the status line begins with what this view may do", () => {
  const played = idle();
  assert.deepEqual(statusParts(played.view), ["Controller", "Connected", "Idle prompt"]);
  played.status({ queue: "busy", holder: "model-send", pending: 2, ahead: 1 });
  assert.deepEqual(statusParts(played.view), [
    "Controller",
    "Connected",
    "Model is working",
    "1 ahead",
    "2 queued",
  ]);
  assert.deepEqual(statusParts(typing().view)[2], "You are typing");
  played.attach();
  const reader = new Played();
  reader.attach({ role: "readonly", reason: "occupied" });
  reader.status({ queue: "blocked" });
  assert.deepEqual(statusParts(reader.view), [
    "Read only",
    "another view controls",
    "Connected",
    "Blocked until reset",
  ]);
});

test("lengths of time are said as a person says them", () => {
  assert.deepEqual(
    [0.4, 59, 60, 3599, 3660, 90_000].map(span),
    ["0 s", "59 s", "1 min", "59 min", "1 h 01 min", "1 d 1 h"],
  );
});
