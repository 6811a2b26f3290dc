/** The status line and the list, in words; values in, text out. */

import type { View } from "./view.ts";

const HOLDERS: Readonly<Record<string, string>> = {
  "model-send": "Model is working",
  human: "Person is typing",
  signal: "Signal is being delivered",
  reset: "Reset is running",
  "disconnect-recovery": "Recovering after a lost connection",
};

const QUEUES: Readonly<Record<string, string>> = {
  ready: "Idle prompt",
  busy: "Busy",
  blocked: "Blocked until reset",
  exited: "Shell has ended",
  disposed: "Closed",
};

const REASONS: Readonly<Record<string, string>> = {
  occupied: "another view controls",
  "invalid-resume": "came back too late",
};

/** Return the parts of the status line; the first is Controller or Read only. */
export function statusParts(view: View): string[] {
  const parts = [view.role === "controller" ? "Controller" : "Read only"];
  const reason = view.role === "controller" ? undefined : REASONS[view.reason];
  if (reason !== undefined && view.connection === "attached") parts.push(reason);
  parts.push(connectionWords(view));
  if (view.connection !== "attached" || view.status === null) return parts;
  parts.push(standing(view));
  if (view.ahead > 0) parts.push(`${view.ahead} ahead`);
  if (view.status.pending > 0) parts.push(`${view.status.pending} queued`);
  return parts;
}

/** Return how the connection stands. */
export function connectionWords(view: View): string {
  switch (view.connection) {
    case "attached":
      return "Connected";
    case "connecting":
      return view.attachedOnce ? "Reconnecting" : "Connecting";
    case "waiting":
      return "Reconnecting";
    case "stopped":
      return "Disconnected";
    case "over":
      return view.attachedOnce ? "Ended" : "Link not valid";
  }
}

function standing(view: View): string {
  const status = view.status;
  if (status === null) return "";
  if (view.lease.state === "held") return "You are typing";
  if (view.lease.state === "asked") return "Waiting for input";
  if (view.lease.state === "closing") return "Interrupting";
  if (status.queue === "blocked" || status.queue === "exited" || status.queue === "disposed") {
    return QUEUES[status.queue] ?? status.queue;
  }
  if (status.holder !== "") return HOLDERS[status.holder] ?? status.holder;
  if (view.kind === "session") return status.process === "exited" ? "Ended" : "Running";
  return QUEUES[status.queue] ?? status.queue;
}

/** Return a length of time as a person says it: `12 s`, `4 min`, `3 h 05 min`, `2 d 4 h`. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${String(minutes % 60).padStart(2, "0")} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}
