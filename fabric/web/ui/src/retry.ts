/**
 * What the page does when its connection ends; no DOM, no timers.
 *
 * A short drop heals by itself. Codes that say the page or its input was at fault do not: they
 * would only happen again, so a person has to press Reconnect. Without a proof to come back
 * with, after the terminal's end, or when another page has come back with the proof, there is
 * nothing to try. After a reset readers come back later than the controller, so that none of
 * them takes its place.
 */

import type { Role } from "./frames.ts";
import { Close } from "./frames.ts";

/** Delay before each attempt in turn; after the last one a person has to ask. */
export const DELAYS_MS = [250, 250, 500, 1000, 1000, 2000, 2000, 4000, 4000] as const;

const READER_AFTER_RESET_MS = 1000;

export type AfterClose =
  | { readonly kind: "retry"; readonly delay_ms: number }
  | { readonly kind: "wait" }
  | { readonly kind: "over" };

const BY_HAND: ReadonlySet<number> = new Set([
  Close.INVALID_UTF8,
  Close.VIOLATION,
  Close.TOO_BIG,
]);

const ENDS: ReadonlySet<number> = new Set([Close.DISPOSED, Close.REFUSED, Close.REPLACED]);

/** Decide after a close: `failures` counts attempts in a row that led to no attachment. */
export function afterClose(
  code: number,
  failures: number,
  canResume: boolean,
  role: Role,
): AfterClose {
  if (ENDS.has(code)) return { kind: "over" };
  if (!canResume) return { kind: "over" };
  if (BY_HAND.has(code)) return { kind: "wait" };
  if (code === Close.RESET && role === "readonly") {
    return { kind: "retry", delay_ms: READER_AFTER_RESET_MS };
  }
  const delay_ms = DELAYS_MS[failures];
  return delay_ms === undefined ? { kind: "wait" } : { kind: "retry", delay_ms };
}
