/** What the page tells a person, beside the status line; words only. */

export type NoticeId =
  | "truncated"
  | "discarded"
  | "lost"
  | "occupied"
  | "late"
  | "protocol"
  | "disposed"
  | "busy"
  | "idle-only"
  | "readonly"
  | "offline"
  | "too-long"
  | "malformed"
  | "slow"
  | "reset"
  | "ended"
  | "refused"
  | "replaced"
  | "server";

export type Tone = "info" | "warning";

export interface Notice {
  readonly id: NoticeId;
  readonly tone: Tone;
  readonly text: string;
}

const TEXTS: Record<Exclude<NoticeId, "server">, readonly [Tone, string]> = {
  truncated: ["info", "Older history was cut: only the newest part is kept."],
  discarded: ["warning", "What you typed and was not sent yet has been discarded."],
  lost: ["warning", "The connection was lost. What was already sent is not sent again."],
  occupied: [
    "info",
    "Another view controls this terminal. Close it, wait for the grace period, then press Reconnect.",
  ],
  late: [
    "info",
    "This view came back too late to keep control. Press Reconnect to ask for it again.",
  ],
  protocol: ["warning", "The server and this page did not understand each other. Press Reconnect."],
  disposed: ["warning", "The terminal has been closed. Unsent input is discarded."],
  busy: ["info", "A model is using the terminal, so this was not typed. Take over input to answer."],
  "idle-only": ["info", "The terminal is not at an idle prompt, so this was not typed."],
  readonly: ["info", "This view only reads: nothing typed here reaches the terminal."],
  offline: ["warning", "Not connected, so this was not typed."],
  "too-long": ["warning", "That is more than one turn of input may hold. Nothing of it was sent."],
  malformed: ["warning", "That is not well-formed text. Nothing of it was sent."],
  slow: ["info", "This view could not keep up and was connected anew."],
  reset: ["info", "The terminal was reset: this is a new shell."],
  ended: ["warning", "This link is used up. Ask for a new one with “fabric view”."],
  replaced: ["warning", "This view goes on in another tab or window."],
  refused: ["warning", "This link is not valid any more. Ask for a new one with “fabric view”."],
};

/** Return a notice by its name. */
export function notice(id: Exclude<NoticeId, "server">): Notice {
  const [tone, text] = TEXTS[id];
  return { id, tone, text };
}

/** Return a notice in the server's own words. */
export function fromServer(reason: string, message: string): Notice {
  return { id: "server", tone: "warning", text: message || reason };
}
