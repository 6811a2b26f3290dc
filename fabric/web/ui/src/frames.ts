/**
 * The frames of the socket, as values; no DOM, no terminal.
 *
 * Every frame is one JSON text with `v`, `type` and, but for the first the page sends, a
 * `generation`. The server's frames are checked field by field: what does not fit is a
 * fault of the protocol (`FrameError`), never a guess. Fields nobody here knows are left
 * alone, so that a newer server can say more.
 */

export const VERSION = 1;
export const SUBPROTOCOL = "pty-fabric.v1";
export const PATH = "/v1/socket";

/** How a connection ends, by the code of its close. */
export const Close = {
  GOING_AWAY: 1001,
  INVALID_UTF8: 1007,
  VIOLATION: 1008,
  TOO_BIG: 1009,
  TRANSPORT: 1011,
  SLOW: 1013,
  RESET: 4001,
  DISPOSED: 4002,
  REFUSED: 4003,
  REPLACED: 4004,
} as const;

export type Role = "controller" | "readonly";
export type Kind = "shared" | "session" | "overview";

export interface Limits {
  readonly scrollback_lines: number;
  readonly max_input_bytes: number;
  readonly heartbeat_s: number;
  readonly grace_s: number;
  readonly rows: number;
  readonly cols: number;
  /** How much output may be on its way to this page, unacknowledged. */
  readonly window_bytes: number;
}

export interface SessionLabel {
  readonly name: string;
  readonly program: string;
  readonly node: string;
}

export interface SessionRow extends SessionLabel {
  readonly id: string;
  readonly state: string;
  readonly age_s: number;
  /** Null while nothing has happened in it. */
  readonly last_activity_s: number | null;
}

export interface Attached {
  readonly type: "attached";
  readonly generation: number;
  readonly role: Role;
  readonly kind: Kind;
  readonly reason: string;
  readonly resume: string;
  readonly session: SessionLabel;
  readonly settings: Limits;
}

export interface Snapshot {
  readonly type: "snapshot";
  readonly generation: number;
  readonly sequence: number;
  readonly data: Uint8Array;
  readonly rows: number;
  readonly cols: number;
  readonly truncated: boolean;
}

export interface Output {
  readonly type: "output";
  readonly generation: number;
  readonly sequence: number;
  readonly data: Uint8Array;
}

export interface Status {
  readonly type: "status";
  readonly generation: number;
  readonly process: string;
  readonly queue: string;
  readonly holder: string;
  readonly pending: number;
  readonly ahead: number;
  readonly takeover: number | null;
  readonly sequence: number;
}

export interface Granted {
  readonly type: "human.granted";
  readonly generation: number;
  readonly lease: number;
}

export interface Queued {
  readonly type: "human.queued";
  readonly generation: number;
  readonly ahead: number;
}

export interface Revoked {
  readonly type: "human.revoked";
  readonly generation: number;
  readonly reason: string;
}

export interface Fault {
  readonly type: "error";
  readonly generation: number;
  readonly reason: string;
  readonly message: string;
}

export interface Heartbeat {
  readonly type: "heartbeat";
  readonly generation: number;
}

export interface Sessions {
  readonly type: "sessions";
  readonly generation: number;
  readonly sessions: readonly SessionRow[];
}

/** A ticket with which to watch one session of the list. */
export interface Ticket {
  readonly type: "watch";
  readonly generation: number;
  readonly session: string;
  readonly ticket: string;
}

export type ServerFrame =
  | Attached
  | Snapshot
  | Output
  | Status
  | Granted
  | Queued
  | Revoked
  | Fault
  | Heartbeat
  | Sessions
  | Ticket;

export type Hello =
  | { readonly ticket: string; readonly readonly?: true }
  | { readonly resume: string };

export type ClientFrame =
  | { readonly type: "human.begin"; readonly data?: string }
  | { readonly type: "human.takeover"; readonly target: number }
  | { readonly type: "human.input"; readonly data: string }
  | { readonly type: "human.cancel" }
  | { readonly type: "terminal.reset"; readonly confirmed: true }
  | { readonly type: "heartbeat" }
  | { readonly type: "snapshot" }
  | { readonly type: "ack"; readonly sequence: number }
  | { readonly type: "watch"; readonly session: string };

/** A frame of the server that is not what was agreed. */
export class FrameError extends Error {}

type Fields = Readonly<Record<string, unknown>>;

/** Encode the first frame of a connection. */
export function encodeHello(hello: Hello): string {
  return JSON.stringify({ v: VERSION, type: "hello", ...hello });
}

/** Encode a frame for the generation the person looks at. */
export function encode(frame: ClientFrame, generation: number): string {
  return JSON.stringify({ v: VERSION, generation, ...frame });
}

/** Decode one frame of the server; throws FrameError. */
export function decode(text: unknown): ServerFrame {
  if (typeof text !== "string") throw new FrameError("a frame is text");
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameError("a frame is one JSON value");
  }
  const fields = object(value, "frame");
  if (fields["v"] !== VERSION) throw new FrameError("another version of the protocol");
  const generation = count(fields, "generation");
  const type = string(fields, "type");
  switch (type) {
    case "attached":
      return attached(fields, generation);
    case "snapshot":
      return {
        type,
        generation,
        sequence: count(fields, "sequence"),
        data: bytes(fields, "data"),
        rows: count(fields, "rows"),
        cols: count(fields, "cols"),
        truncated: fields["truncated"] === true,
      };
    case "output":
      return {
        type,
        generation,
        sequence: count(fields, "sequence"),
        data: bytes(fields, "data"),
      };
    case "status":
      return {
        type,
        generation,
        process: string(fields, "process"),
        queue: string(fields, "queue"),
        holder: optionalString(fields, "holder"),
        pending: count(fields, "pending"),
        ahead: optionalCount(fields, "ahead") ?? 0,
        takeover: optionalCount(fields, "takeover"),
        sequence: optionalCount(fields, "sequence") ?? 0,
      };
    case "human.granted":
      return { type, generation, lease: count(fields, "lease") };
    case "human.queued":
      return { type, generation, ahead: count(fields, "ahead") };
    case "human.revoked":
      return { type, generation, reason: string(fields, "reason") };
    case "error":
      return {
        type,
        generation,
        reason: string(fields, "reason"),
        message: optionalString(fields, "message"),
      };
    case "heartbeat":
      return { type, generation };
    case "sessions":
      return { type, generation, sessions: rows(fields) };
    case "watch":
      return {
        type,
        generation,
        session: string(fields, "session"),
        ticket: string(fields, "ticket"),
      };
    default:
      throw new FrameError(`no frame is called ${type.slice(0, 40)}`);
  }
}

function attached(fields: Fields, generation: number): Attached {
  const role = string(fields, "role");
  const kind = string(fields, "kind");
  if (role !== "controller" && role !== "readonly") throw new FrameError("no such role");
  if (kind !== "shared" && kind !== "session" && kind !== "overview") {
    throw new FrameError("no such kind of view");
  }
  const settings = object(fields["settings"] ?? {}, "settings");
  const session = object(fields["session"] ?? {}, "session");
  return {
    type: "attached",
    generation,
    role,
    kind,
    reason: optionalString(fields, "reason"),
    resume: optionalString(fields, "resume"),
    session: label(session),
    settings: {
      scrollback_lines: optionalCount(settings, "scrollback_lines") ?? 10_000,
      max_input_bytes: optionalCount(settings, "max_input_bytes") ?? 65_536,
      heartbeat_s: optionalNumber(settings, "heartbeat_s") ?? 15,
      grace_s: optionalNumber(settings, "grace_s") ?? 15,
      rows: optionalCount(settings, "rows") ?? 40,
      cols: optionalCount(settings, "cols") ?? 160,
      window_bytes: optionalCount(settings, "window_bytes") ?? 262_144,
    },
  };
}

function rows(fields: Fields): SessionRow[] {
  const list = fields["sessions"];
  if (!Array.isArray(list)) throw new FrameError("sessions is a list");
  return list.map((item) => {
    const row = object(item, "session");
    return {
      ...label(row),
      id: string(row, "id"),
      state: string(row, "state"),
      age_s: optionalNumber(row, "age_s") ?? 0,
      last_activity_s: optionalNumber(row, "last_activity_s"),
    };
  });
}

function label(fields: Fields): SessionLabel {
  return {
    name: optionalString(fields, "name"),
    program: optionalString(fields, "program"),
    node: optionalString(fields, "node"),
  };
}

function object(value: unknown, what: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new FrameError(`${what} is an object`);
  }
  return value as Fields;
}

function string(fields: Fields, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new FrameError(`${name} is a string`);
  return value;
}

function optionalString(fields: Fields, name: string): string {
  const value = fields[name];
  return value === undefined || value === null ? "" : string(fields, name);
}

function count(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw new FrameError(`${name} is a whole number, 0 or more`);
  }
  return value;
}

function optionalCount(fields: Fields, name: string): number | null {
  const value = fields[name];
  return value === undefined || value === null ? null : count(fields, name);
}

function optionalNumber(fields: Fields, name: string): number | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) {
    throw new FrameError(`${name} is a number, 0 or more`);
  }
  return value;
}

function bytes(fields: Fields, name: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(string(fields, name));
  } catch {
    throw new FrameError(`${name} is base64`);
  }
  const result = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at += 1) result[at] = binary.charCodeAt(at);
  return result;
}
