/**
 * A person's right to type, as the page knows it; no DOM, no terminal.
 *
 * ```
 *            begin, takeover                granted
 *   none ──────────────────────▶ asked ───────────────▶ held(lease)
 *    ▲                             │                       │
 *    │ revoked, refused            │ connection lost       │ connection lost
 *    ├─────────────────────────────┤                       ▼
 *    │ not granted again, other lease                    lost(lease)
 *    └──────────────────────────────────────────────────── │
 *                       the same lease granted again ──▶ held
 * ```
 *
 * The first key at an idle prompt travels with the request; what is typed while the answer
 * is awaited, or while the connection of a held lease is away, is kept and goes out once,
 * under a confirmed lease. It never goes out under another lease than the one it was typed
 * for. What was sent is never sent again. Interrupt gives the lease up at once: the server
 * holds the terminal until the prompt returns, and nothing more is typed under it.
 */

export type LeaseState = "none" | "asked" | "held" | "lost" | "closing";

/** How many bytes a string is in UTF-8; -1 when it is not well-formed text. */
export function utf8Length(text: string): number {
  let total = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) total += 1;
    else if (unit < 0x800) total += 2;
    else if (unit < 0xd800 || unit > 0xdfff) total += 3;
    else {
      const next = text.charCodeAt(at + 1);
      if (unit > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return -1;
      total += 4;
      at += 1;
    }
  }
  return total;
}

/** The lease and the keys that wait for it. */
export class Lease {
  #state: LeaseState = "none";
  #number: number | null = null;
  #pending: string[] = [];
  #used = 0;

  get state(): LeaseState {
    return this.#state;
  }

  /** True when keys typed now belong to a lease, held or awaited. */
  get open(): boolean {
    return this.#state === "asked" || this.#state === "held" || this.#state === "lost";
  }

  /** How many bytes of this lease have been typed, sent or not. */
  get usedBytes(): number {
    return this.#used;
  }

  /** True when something was typed that was not sent. */
  get hasUnsent(): boolean {
    return this.#pending.length > 0;
  }

  /** A request is on its way; `bytes` travel with it. */
  ask(bytes: number): void {
    this.#clear("asked");
    this.#used = bytes;
  }

  /** Take what was typed: the text to send now, or null when it waits. */
  type(text: string, bytes: number): string | null {
    this.#used += bytes;
    if (this.#state === "held") return text;
    this.#pending.push(text);
    return null;
  }

  /** The server granted a lease: what to send now, and whether unsent text was given up. */
  grant(lease: number): { readonly send: string; readonly discarded: boolean } {
    const other = this.#state === "lost" && this.#number !== null && this.#number !== lease;
    const unasked = this.#state === "none" || this.#state === "closing";
    const discarded = (other || unasked) && this.hasUnsent;
    const send = other || unasked ? "" : this.#pending.join("");
    if (other || unasked) this.#used = 0;
    this.#pending = [];
    this.#state = "held";
    this.#number = lease;
    return { send, discarded };
  }

  /** The lease is over or was refused; returns whether unsent text was given up. */
  revoke(): boolean {
    const discarded = this.hasUnsent;
    this.#clear("none");
    return discarded;
  }

  /** The person interrupts: nothing more is typed; returns whether unsent text was given up. */
  interrupt(): boolean {
    const discarded = this.hasUnsent;
    this.#clear("closing");
    return discarded;
  }

  /** The connection is gone; the lease may come back with the next one. */
  disconnect(): void {
    if (this.#state === "asked" || this.#state === "held") this.#state = "lost";
    else if (this.#state === "closing") this.#clear("none");
  }

  #clear(state: LeaseState): void {
    this.#state = state;
    this.#number = null;
    this.#pending = [];
    this.#used = 0;
  }
}
