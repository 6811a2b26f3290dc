/** One WebSocket connection: the browser's object behind ours; stale ones are silent. */

import { Close, PATH, SUBPROTOCOL } from "./frames.ts";

/** How long a connection may take to open. */
const OPEN_MS = 10_000;

export interface SocketEvents {
  readonly text: (data: unknown) => void;
  readonly closed: (code: number) => void;
}

export class Socket {
  #socket: WebSocket | null = null;

  /** Open a connection and send `hello` as its first frame; an older one ends silently. */
  connect(hello: string, events: SocketEvents): void {
    this.close();
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${PATH}`, SUBPROTOCOL);
    this.#socket = socket;
    const late = setTimeout(() => socket.close(), OPEN_MS);
    socket.onopen = () => {
      clearTimeout(late);
      socket.send(hello);
    };
    socket.onmessage = (event: MessageEvent<unknown>) => {
      if (socket === this.#socket) events.text(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(late);
      if (socket !== this.#socket) return;
      this.#socket = null;
      events.closed(event.code || Close.TRANSPORT);
    };
  }

  send(text: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(text);
  }

  /** End the connection; nothing more is heard of it. */
  close(): void {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
  }
}
