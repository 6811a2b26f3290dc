/** Small things every part of the page needs from the document. */

import type { Notice, NoticeId } from "./notices.ts";

/** Return the element with this id; the page's own markup has it. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`the page has no #${id}`);
  return element as T;
}

/** Set a text only when it differs, so that live regions speak only then. */
export function say(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Paint the status line; its first part becomes the badge. */
export function paintStatus(line: HTMLElement, parts: readonly string[], tone: string): void {
  if (line.dataset["text"] === parts.join("\n") && line.dataset["tone"] === tone) return;
  line.dataset["text"] = parts.join("\n");
  line.dataset["tone"] = tone;
  line.replaceChildren(
    ...parts.flatMap((part, at) => {
      const span = document.createElement("span");
      span.textContent = part;
      span.className = at === 0 ? "badge" : "part";
      return at === 0 ? [span] : [document.createTextNode(at === 1 ? "  " : " · "), span];
    }),
  );
}

/** The notices of one view: one of a kind at a time, the newest last, each dismissable. */
export class Notices {
  readonly #box: HTMLElement;
  readonly #shown = new Map<NoticeId, HTMLElement>();

  constructor(box: HTMLElement) {
    this.#box = box;
    box.replaceChildren();
  }

  add(notice: Notice): void {
    this.remove(notice.id);
    const row = document.createElement("p");
    row.className = `notice ${notice.tone}`;
    row.dataset["id"] = notice.id;
    const text = document.createElement("span");
    text.textContent = notice.text;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "×";
    button.setAttribute("aria-label", "Dismiss");
    button.addEventListener("click", () => this.remove(notice.id));
    row.append(text, button);
    this.#shown.set(notice.id, row);
    this.#box.append(row);
  }

  remove(id: NoticeId): void {
    this.#shown.get(id)?.remove();
    this.#shown.delete(id);
  }

  clear(): void {
    for (const id of [...this.#shown.keys()]) this.remove(id);
  }
}

/** A setting of this browser; without storage it lasts as long as the page. */
export function stored(key: string, value?: string): string | null {
  try {
    if (value !== undefined) localStorage.setItem(key, value);
    return localStorage.getItem(key);
  } catch {
    return value ?? null;
  }
}
