/**
 * Carries out what a `View` says that concerns the connection: socket, delays, time.
 * What concerns the page is left to its owner.
 */

import type { Hello } from "./frames.ts";
import { Close, FrameError, decode, encode, encodeHello } from "./frames.ts";
import { Socket } from "./socket.ts";
import type { Instruction } from "./view.ts";
import { View } from "./view.ts";

const TICK_MS = 1000;

/** What is on the page for a link. */
export interface Page {
  /** Carry out an instruction that concerns the page. */
  carryOut(instruction: Instruction): void;
  /** Show how the view stands; called after every event. */
  refresh(): void;
}

export class Link {
  readonly view = new View();
  readonly #socket = new Socket();
  #page: Page;
  readonly #ticking = setInterval(() => this.run(this.view.tick(performance.now())), TICK_MS);
  #delay: ReturnType<typeof setTimeout> | undefined;

  /** `open` makes the first page. */
  constructor(open: (link: Link) => Page) {
    this.#page = open(this);
  }

  /** Give the link another page, to which the rest of the running instructions go too. */
  get page(): Page {
    return this.#page;
  }

  set page(page: Page) {
    this.#page = page;
  }

  /** Carry out instructions in order, and show how the view stands then. */
  run(instructions: readonly Instruction[]): void {
    this.#carryOut(instructions);
    this.#page.refresh();
  }

  /** Note that output up to `sequence` is on the screen; changes nothing that is shown. */
  painted(sequence: number, generation: number): void {
    this.#carryOut(this.view.painted(sequence, generation));
  }

  #carryOut(instructions: readonly Instruction[]): void {
    for (const instruction of instructions) {
      switch (instruction.kind) {
        case "connect":
          this.#connect(instruction.hello);
          break;
        case "connect-later":
          clearTimeout(this.#delay);
          this.#delay = setTimeout(() => this.run(this.view.due()), instruction.delay_ms);
          break;
        case "disconnect":
          this.#socket.close();
          break;
        case "send":
          this.#socket.send(encode(instruction.frame, instruction.generation));
          break;
        default:
          this.#page.carryOut(instruction);
      }
    }
  }

  /** End everything; nothing more is shown. */
  dispose(): void {
    clearInterval(this.#ticking);
    clearTimeout(this.#delay);
    this.#socket.close();
  }

  #connect(hello: Hello): void {
    clearTimeout(this.#delay);
    try {
      this.#socket.connect(encodeHello(hello), {
        text: (data) => this.#text(data),
        closed: (code) => this.run(this.view.closed(code)),
      });
    } catch {
      // The browser refused to open a socket at all; it counts as a failed attempt.
      this.run(this.view.closed(Close.TRANSPORT));
    }
  }

  #text(data: unknown): void {
    try {
      this.run(this.view.frame(decode(data), performance.now()));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.run(this.view.malformed());
    }
  }
}
