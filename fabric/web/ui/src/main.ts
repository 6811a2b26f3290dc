/** Where the page begins: the ticket of its link, and which page that is for. */

import "@xterm/xterm/css/xterm.css";
import "./style.css";

import { byId } from "./dom.ts";
import type { Hello } from "./frames.ts";
import { Link } from "./link.ts";
import { ListPage } from "./list.ts";
import { keepToPolicy } from "./strict.ts";
import { TerminalPage } from "./terminal.ts";

/** The proof to come back with survives a reload of this tab, and nothing else. */
const RESUME_KEY = "pty-fabric.resume";

keepToPolicy();
start();

function start(): void {
  const link = new URLSearchParams(location.hash.slice(1));
  // The ticket is good once; it does not stay in the address bar or the history.
  if (location.hash !== "") history.replaceState(null, "", location.pathname);
  window.addEventListener("hashchange", () => location.reload());
  const ticket = link.get("t");
  const hello = ticket !== null ? helloWith(ticket) : recall();
  if (hello === null) {
    byId("blank-text").textContent =
      "Open this page by the link that “fabric view” prints; it works once, for a short time.";
    byId("blank").hidden = false;
    return;
  }
  open(hello);
}

/** Show a terminal until the server says that the link is for the list. */
function open(hello: Hello): void {
  let terminal: TerminalPage;
  const link = new Link((self) => {
    terminal = new TerminalPage(self, remember);
    return {
      carryOut: (instruction) => {
        if (instruction.kind === "ready" && instruction.attached.kind === "overview") {
          terminal.dispose();
          self.page = listPage(self);
        } else terminal.carryOut(instruction);
      },
      refresh: () => terminal.refresh(),
    };
  });
  link.run(link.view.start(hello));
}

function listPage(link: Link): ListPage {
  const list = new ListPage(link, remember, (ticket) => {
    list.hidden = true;
    const watched = new Link(
      (self) =>
        new TerminalPage(
          self,
          () => undefined,
          () => {
            page.dispose();
            self.dispose();
            list.hidden = false;
          },
        ),
    );
    const page = watched.page as TerminalPage;
    watched.run(watched.view.start({ ticket }));
  });
  return list;
}

function helloWith(ticket: string): Hello {
  return smallDevice() ? { ticket, readonly: true } : { ticket };
}

/** Phones and tablets only read: their keyboards rewrite what is typed. */
function smallDevice(): boolean {
  const hints = (navigator as { userAgentData?: { mobile?: boolean } }).userAgentData;
  if (hints?.mobile !== undefined && hints.mobile) return true;
  return /Android|iPhone|iPad|iPod|Mobile/i.test(navigator.userAgent);
}

let remembered = "";

function remember(resume: string): void {
  if (resume === remembered) return;
  remembered = resume;
  try {
    if (resume === "") sessionStorage.removeItem(RESUME_KEY);
    else sessionStorage.setItem(RESUME_KEY, resume);
  } catch {
    // Without storage a reload needs a new link, and the page says so.
  }
}

function recall(): Hello | null {
  try {
    const resume = sessionStorage.getItem(RESUME_KEY);
    return resume === null ? null : { resume };
  } catch {
    return null;
  }
}
