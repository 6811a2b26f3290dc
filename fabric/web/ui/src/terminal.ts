/** The page of one terminal: status line, controls, notices and the screen. */

import { Notices, byId, paintStatus, say, stored } from "./dom.ts";
import type { Link, Page } from "./link.ts";
import { FONT, Screen } from "./screen.ts";
import type { Instruction, View } from "./view.ts";
import { statusParts } from "./words.ts";

const FONT_KEY = "pty-fabric.font";
const SPOKEN_KEY = "pty-fabric.spoken";

export class TerminalPage implements Page {
  readonly #link: Link;
  readonly #notices = new Notices(byId("notices"));
  readonly #ended = new AbortController();
  readonly #keep: (resume: string) => void;
  #screen: Screen | null = null;
  #font = savedFont();

  /**
   * Show what `link` leads to. `keep` is called with the proof to come back with, and with
   * "" once there is none; `back` is set when the page was reached from the list.
   */
  constructor(link: Link, keep: (resume: string) => void, back?: () => void) {
    this.#link = link;
    this.#keep = keep;
    byId("view").hidden = false;
    byId("back").hidden = back === undefined;
    byId<HTMLInputElement>("spoken").checked = stored(SPOKEN_KEY) === "yes";
    this.#listen(back);
    this.#setFont(this.#font);
  }

  /** Leave the page; the terminal itself goes on. */
  dispose(): void {
    this.#ended.abort();
    this.#screen?.dispose();
    this.#screen = null;
    this.#notices.clear();
    byId("stage").replaceChildren();
    this.#ask(false);
    byId("view").hidden = true;
  }

  get #view(): View {
    return this.#link.view;
  }

  carryOut(instruction: Instruction): void {
    switch (instruction.kind) {
      case "ready":
        this.#ready();
        break;
      case "paint": {
        const { data, sequence } = instruction.snapshot;
        this.#screen?.paint(data, this.#painted(sequence));
        break;
      }
      case "write":
        this.#screen?.write(instruction.data, this.#painted(instruction.sequence));
        break;
      case "notice":
        this.#notices.add(instruction.notice);
        break;
      case "withdraw":
        this.#notices.remove(instruction.id);
        break;
      case "focus-terminal":
        this.#screen?.focus();
        break;
      case "dispose":
        this.#screen?.dispose();
        this.#screen = null;
        byId("stage").replaceChildren();
        break;
      default:
        break;
    }
  }

  #painted(sequence: number): () => void {
    const { generation } = this.#view;
    return () => this.#link.painted(sequence, generation);
  }

  #ready(): void {
    const { settings, role } = this.#view;
    if (this.#screen === null) {
      this.#screen = new Screen(
        byId("stage"),
        {
          rows: settings.rows,
          cols: settings.cols,
          scrollback: settings.scrollback_lines,
          font: this.#font,
        },
        {
          typed: (text) => this.#link.run(this.#view.typed(text)),
          leave: () => this.#leave(),
        },
      );
      this.#screen.spoken = byId<HTMLInputElement>("spoken").checked;
      if (role === "controller") this.#screen.focus();
    }
    this.#screen.readonly = role !== "controller";
  }

  refresh(): void {
    const view = this.#view;
    if (this.#ended.signal.aborted) return;
    const parts = statusParts(view);
    const { name, program, node } = view.session;
    const label = name || "Terminal";
    paintStatus(byId("status"), parts, toneOf(view));
    say(byId("title"), label);
    byId("title").title = [program, node].filter((part) => part !== "").join(" on ");
    document.title = `${parts[0]} · ${label}`;
    enable("takeover", view.canTakeOver);
    enable("interrupt", view.canInterrupt);
    enable("reconnect", view.canReconnect);
    enable("reset", view.canReset);
    enable("confirm-yes", view.canReset);
    enable("clear", this.#screen !== null);
    for (const id of ["takeover", "interrupt", "reset"]) {
      byId(id).hidden = view.attachedOnce && view.kind !== "shared";
    }
    if (!view.canReset && view.connection === "attached") this.#ask(false);
    const { rows, cols } = view.settings;
    const facts = [program, node, `${cols} × ${rows}`];
    if (view.generation > 0 && view.kind === "shared") facts.push(`shell ${view.generation}`);
    say(byId("facts"), facts.filter((part) => part !== "").join(" · "));
    this.#keep(view.connection === "over" ? "" : view.resume);
  }

  #listen(back?: () => void): void {
    const { signal } = this.#ended;
    const on = (id: string, act: () => void) =>
      byId(id).addEventListener("click", act, { signal });
    on("takeover", () => this.#link.run(this.#view.takeOver()));
    on("interrupt", () => this.#link.run(this.#view.interrupt()));
    on("reconnect", () => this.#link.run(this.#view.reconnect()));
    on("clear", () => this.#screen?.clear());
    on("smaller", () => this.#setFont(this.#font - 1));
    on("larger", () => this.#setFont(this.#font + 1));
    on("reset", () => this.#ask(byId("confirm").hidden));
    on("confirm-no", () => this.#ask(false));
    on("confirm-yes", () => {
      this.#link.run(this.#view.reset());
      this.#ask(false);
      this.#screen?.focus();
    });
    if (back !== undefined) on("back", back);
    byId("spoken").addEventListener(
      "change",
      () => {
        const { checked } = byId<HTMLInputElement>("spoken");
        stored(SPOKEN_KEY, checked ? "yes" : "no");
        if (this.#screen !== null) this.#screen.spoken = checked;
      },
      { signal },
    );
    byId("view").addEventListener(
      "keydown",
      (event) => {
        if (event.key === "Escape" && !byId("confirm").hidden) this.#ask(false);
        else if (event.key === "F6" && !event.defaultPrevented) {
          event.preventDefault();
          this.#screen?.focus();
        }
      },
      { signal },
    );
  }

  /** Ask whether to reset, or stop asking. */
  #ask(open: boolean): void {
    const box = byId("confirm");
    if (box.hidden !== open) return;
    box.hidden = !open;
    byId("reset").setAttribute("aria-expanded", String(open));
    if (open) byId("confirm-no").focus();
    else if (box.contains(document.activeElement)) byId("reset").focus();
  }

  /** Move the keyboard from the terminal to the first control that can be used. */
  #leave(): void {
    const buttons = byId("view").querySelectorAll<HTMLButtonElement>(".bar .controls button");
    for (const button of buttons) {
      if (!button.disabled && !button.hidden) {
        button.focus();
        return;
      }
    }
  }

  #setFont(size: number): void {
    this.#font = Math.min(FONT.largest, Math.max(FONT.smallest, size));
    stored(FONT_KEY, String(this.#font));
    say(byId("size"), String(this.#font));
    enable("smaller", this.#font > FONT.smallest);
    enable("larger", this.#font < FONT.largest);
    if (this.#screen !== null) this.#screen.font = this.#font;
  }
}

function savedFont(): number {
  const saved = Number(stored(FONT_KEY) ?? FONT.usual);
  return Number.isInteger(saved) && saved >= FONT.smallest && saved <= FONT.largest
    ? saved
    : FONT.usual;
}

function enable(id: string, on: boolean): void {
  byId<HTMLButtonElement>(id).disabled = !on;
}

function toneOf(view: View): string {
  if (view.connection !== "attached") return "away";
  return view.role === "controller" ? "controller" : "readonly";
}
