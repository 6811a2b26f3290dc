/** The page of all terminals of one owner: a table that the server keeps up to date. */

import { Notices, byId, paintStatus, say } from "./dom.ts";
import type { SessionRow } from "./frames.ts";
import type { Link, Page } from "./link.ts";
import type { Instruction } from "./view.ts";
import { connectionWords, span } from "./words.ts";

export class ListPage implements Page {
  readonly #link: Link;
  readonly #keep: (resume: string) => void;
  readonly #watch: (ticket: string) => void;
  readonly #notices = new Notices(byId("list-notices"));
  readonly #rows = new Map<string, HTMLTableRowElement>();

  /** Show the list; `watch` is called with a ticket when a person wants to watch a terminal. */
  constructor(link: Link, keep: (resume: string) => void, watch: (ticket: string) => void) {
    this.#link = link;
    this.#keep = keep;
    this.#watch = watch;
    byId("list").hidden = false;
    byId("list-reconnect").addEventListener("click", () => link.run(link.view.reconnect()));
  }

  set hidden(value: boolean) {
    byId("list").hidden = value;
    if (!value) this.refresh();
  }

  carryOut(instruction: Instruction): void {
    if (instruction.kind === "sessions") this.#show(instruction.rows);
    else if (instruction.kind === "open-view") this.#watch(instruction.ticket);
    else if (instruction.kind === "notice") this.#notices.add(instruction.notice);
    else if (instruction.kind === "withdraw") this.#notices.remove(instruction.id);
  }

  refresh(): void {
    const { view } = this.#link;
    const attached = view.connection === "attached";
    const parts = ["Read only", connectionWords(view)];
    if (attached) parts.push(`${this.#rows.size} open`);
    paintStatus(byId("list-status"), parts, attached ? "readonly" : "away");
    byId<HTMLButtonElement>("list-reconnect").disabled = !view.canReconnect;
    if (!byId("list").hidden) document.title = "Terminals · pty-fabric";
    this.#keep(view.connection === "over" ? "" : view.resume);
  }

  /** Bring the table up to date; rows that stay keep their place and the keyboard's focus. */
  #show(sessions: readonly SessionRow[]): void {
    const body = byId("list-rows");
    const gone = new Set(this.#rows.keys());
    for (const session of sessions) {
      gone.delete(session.id);
      let row = this.#rows.get(session.id);
      if (row === undefined) {
        row = this.#make(session);
        this.#rows.set(session.id, row);
        body.append(row);
      }
      fill(row, session);
    }
    for (const id of gone) {
      this.#rows.get(id)?.remove();
      this.#rows.delete(id);
    }
    byId("list-empty").hidden = sessions.length > 0;
  }

  #make(session: SessionRow): HTMLTableRowElement {
    const row = document.createElement("tr");
    row.dataset["id"] = session.id;
    const name = document.createElement("th");
    name.scope = "row";
    row.append(name);
    for (const label of ["Program", "Node", "State", "Age", "Last activity"]) {
      const cell = document.createElement("td");
      cell.dataset["label"] = label;
      row.append(cell);
    }
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Watch";
    button.setAttribute("aria-label", `Watch ${session.name || session.id}`);
    button.addEventListener("click", () => this.#link.run(this.#link.view.watch(session.id)));
    const last = document.createElement("td");
    last.className = "act";
    last.append(button);
    row.append(last);
    return row;
  }
}

function fill(row: HTMLTableRowElement, session: SessionRow): void {
  const texts = [
    session.name || session.id,
    session.program,
    session.node,
    session.state,
    span(session.age_s),
    session.last_activity_s === null ? "—" : `${span(session.last_activity_s)} ago`,
  ];
  texts.forEach((text, at) => {
    const cell = row.cells[at];
    if (cell !== undefined) say(cell, text);
  });
  row.dataset["state"] = session.state;
}
