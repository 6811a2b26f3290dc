/** The terminal on the page: a renderer of fixed size, its look and its keys. */

import { Unicode11Addon } from "@xterm/addon-unicode11";
import type { IDisposable, ITheme } from "@xterm/xterm";
import { Terminal } from "@xterm/xterm";

import { onPersonalInput, silence } from "./quiet.ts";

export const FONT = { smallest: 8, usual: 14, largest: 28 } as const;
const RESET = new Uint8Array([0x1b, 0x63]);
const FAMILY =
  'ui-monospace, "SF Mono", "Cascadia Mono", Menlo, Consolas, "DejaVu Sans Mono", ' +
  '"Liberation Mono", "Noto Sans Mono CJK SC", "Noto Color Emoji", monospace';

const DARK: ITheme = {
  background: "#0e1116",
  foreground: "#d6dce4",
  cursor: "#d6dce4",
  cursorAccent: "#0e1116",
  selectionBackground: "#2f4a6b",
  black: "#20262e",
  red: "#e5706b",
  green: "#6fbf8b",
  yellow: "#d9b45b",
  blue: "#6fa8e8",
  magenta: "#b88ae0",
  cyan: "#5bbcc4",
  white: "#c4ccd6",
  brightBlack: "#758090",
  brightRed: "#f08f8a",
  brightGreen: "#8fd6a8",
  brightYellow: "#ecca7a",
  brightBlue: "#93c0f2",
  brightMagenta: "#cfa9ee",
  brightCyan: "#83d3da",
  brightWhite: "#f2f5f8",
};
const LIGHT: ITheme = {
  background: "#fdfdfc",
  foreground: "#23292f",
  cursor: "#23292f",
  cursorAccent: "#fdfdfc",
  selectionBackground: "#bcd6f5",
  black: "#23292f",
  red: "#b3302b",
  green: "#1f7a45",
  yellow: "#8a6300",
  blue: "#1d5fae",
  magenta: "#7d3fae",
  cyan: "#0b7078",
  white: "#6a737d",
  brightBlack: "#57606a",
  brightRed: "#c8443e",
  brightGreen: "#2b8f56",
  brightYellow: "#9f7400",
  brightBlue: "#2f74c6",
  brightMagenta: "#9154c2",
  brightCyan: "#1a848c",
  brightWhite: "#23292f",
};

export interface ScreenEvents {
  readonly typed: (text: string) => void;
  readonly leave: () => void;
}

export class Screen {
  readonly #terminal: Terminal;
  readonly #events: ScreenEvents;
  readonly #frame: HTMLElement;
  readonly #parts: IDisposable[];
  readonly #scheme = window.matchMedia("(prefers-color-scheme: dark)");
  readonly #restyle = () => {
    this.#terminal.options.theme = this.#scheme.matches ? DARK : LIGHT;
  };
  #readonly = true;
  #revealing = false;

  /** Make a screen in `frame`, which may scroll. */
  constructor(
    frame: HTMLElement,
    size: { rows: number; cols: number; scrollback: number; font: number },
    events: ScreenEvents,
  ) {
    this.#frame = frame;
    this.#events = events;
    this.#terminal = new Terminal({
      rows: size.rows,
      cols: size.cols,
      scrollback: size.scrollback,
      fontSize: size.font,
      fontFamily: FAMILY,
      lineHeight: 1.2,
      theme: this.#scheme.matches ? DARK : LIGHT,
      minimumContrastRatio: 4.5,
      allowProposedApi: true,
      altClickMovesCursor: false,
      cursorBlink: false,
      cursorInactiveStyle: "outline",
      disableStdin: true,
      macOptionIsMeta: true,
    });
    this.#terminal.loadAddon(new Unicode11Addon());
    this.#terminal.unicode.activeVersion = "11";
    this.#terminal.attachCustomKeyEventHandler((event) => this.#key(event));
    this.#terminal.attachCustomWheelEventHandler(
      () => this.#terminal.buffer.active.type === "normal",
    );
    this.#parts = [
      ...silence(this.#terminal),
      ...onPersonalInput(this.#terminal, (text) => events.typed(text)),
      this.#terminal.onCursorMove(() => this.#revealSoon()),
    ];
    this.#terminal.open(frame);
    this.#scheme.addEventListener("change", this.#restyle);
    this.#terminal.textarea?.setAttribute("aria-label", "Terminal input");
  }

  /** Paint a snapshot over everything; `painted` is called once it is on the screen. */
  paint(data: Uint8Array, painted: () => void): void {
    // In the stream, so that it takes effect after whatever is still waiting to be painted.
    this.#terminal.write(RESET);
    this.#terminal.write(data, painted);
  }

  /** Paint what follows; `painted` is called once it is on the screen. */
  write(data: Uint8Array, painted: () => void): void {
    this.#terminal.write(data, painted);
  }

  /** Say whether typing is of use here. */
  set readonly(value: boolean) {
    this.#readonly = value;
    this.#terminal.options.disableStdin = false;
    this.#terminal.options.cursorStyle = value ? "underline" : "block";
  }

  set font(size: number) {
    this.#terminal.options.fontSize = size;
    this.#revealSoon();
  }

  /** Announce output to screen readers. */
  set spoken(value: boolean) {
    this.#terminal.options.screenReaderMode = value;
  }

  focus(): void {
    this.#terminal.focus();
  }

  /** Forget what is above the cursor's line, here only. */
  clear(): void {
    this.#terminal.clear();
  }

  dispose(): void {
    this.#scheme.removeEventListener("change", this.#restyle);
    for (const part of this.#parts) part.dispose();
    this.#terminal.dispose();
  }

  #key(event: KeyboardEvent): boolean {
    if (event.key === "F6") {
      if (event.type === "keydown") {
        event.preventDefault();
        this.#events.leave();
      }
      return false;
    }
    if (this.#readonly && event.key === "Tab") return false;
    const command = (event.ctrlKey || event.metaKey) && !event.altKey;
    const letter = event.key.toLowerCase();
    if (command && letter === "v") return false;
    if (command && letter === "c" && this.#terminal.hasSelection()) {
      // The browser copies after this; the next Ctrl+C is the program's again.
      if (event.type === "keyup") this.#terminal.clearSelection();
      return false;
    }
    return true;
  }

  #revealSoon(): void {
    if (this.#revealing) return;
    this.#revealing = true;
    requestAnimationFrame(() => {
      this.#revealing = false;
      this.#reveal();
    });
  }

  /** Scroll the frame, if it is smaller than the screen, to where the cursor is. */
  #reveal(): void {
    const rows = this.#frame.querySelector<HTMLElement>(".xterm-screen");
    if (rows === null || document.activeElement !== this.#terminal.textarea) return;
    const height = rows.clientHeight / this.#terminal.rows;
    const width = rows.clientWidth / this.#terminal.cols;
    const { cursorX, cursorY } = this.#terminal.buffer.active;
    const top = rows.offsetTop + cursorY * height;
    const left = cursorX * width;
    const frame = this.#frame;
    if (top < frame.scrollTop) frame.scrollTop = top;
    else if (top + height > frame.scrollTop + frame.clientHeight) {
      frame.scrollTop = top + 2 * height - frame.clientHeight;
    }
    if (left < frame.scrollLeft) frame.scrollLeft = Math.max(0, left - 4 * width);
    else if (left + width > frame.scrollLeft + frame.clientWidth) {
      frame.scrollLeft = left + 8 * width - frame.clientWidth;
    }
  }
}
