/**
 * The law of the sequence: which bytes of a stream are painted; no DOM, no terminal.
 *
 * A snapshot says up to which offset it shows. Output says the offset after its last byte.
 * Bytes at or below what was seen are duplicates and dropped, bytes that follow are painted,
 * bytes beyond a hole are not: a new snapshot is asked for, once, and everything until it
 * comes is dropped. A snapshot older than what was seen still counts, for the server made it
 * for this connection after the page asked.
 */

export type Verdict =
  | { readonly kind: "paint"; readonly data: Uint8Array }
  | { readonly kind: "drop" }
  | { readonly kind: "ask" };

const DROP: Verdict = { kind: "drop" };

/** Follows one stream of one connection. */
export class Sequence {
  #seen: number | null = null;
  #asked = false;

  /** The offset after the last byte painted; null before the first snapshot. */
  get seen(): number | null {
    return this.#seen;
  }

  /** Take a snapshot: the screen is what it says. */
  snapshot(sequence: number): void {
    this.#seen = sequence;
    this.#asked = false;
  }

  /** Judge output whose last byte comes just before `sequence`. */
  output(sequence: number, data: Uint8Array): Verdict {
    if (this.#asked) return DROP;
    if (this.#seen === null) return this.#ask();
    if (sequence <= this.#seen) return DROP;
    const begin = sequence - data.length;
    if (begin > this.#seen) return this.#ask();
    const fresh = data.subarray(this.#seen - begin);
    this.#seen = sequence;
    return { kind: "paint", data: fresh };
  }

  /** Another connection: only its snapshot counts. */
  skip(): void {
    this.#asked = true;
  }

  #ask(): Verdict {
    this.#asked = true;
    return { kind: "ask" };
  }
}
