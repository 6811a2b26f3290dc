/**
 * Keeps the renderer from answering on its own.
 *
 * Programs ask a terminal what it is, where the cursor stands, which colours it has; the
 * renderer would answer, and the answer would be typed into whatever reads the terminal.
 * Two independent guards: the questions, and the modes that make the renderer report by
 * itself, are taken out of the stream before it sees them; and only data which the renderer
 * marks as a person's input leaves it. A paste that looks like such an answer is a person's.
 */

import type { IDisposable, IFunctionIdentifier, Terminal } from "@xterm/xterm";

/** Control sequences that ask something or act on the window. */
const QUESTIONS: readonly IFunctionIdentifier[] = [
  { final: "c" },
  { prefix: ">", final: "c" },
  { prefix: "=", final: "c" },
  { final: "n" },
  { prefix: "?", final: "n" },
  { prefix: ">", final: "q" },
  { intermediates: "$", final: "p" },
  { prefix: "?", intermediates: "$", final: "p" },
  { intermediates: "$", final: "w" },
  { final: "x" },
  { final: "t" },
  { prefix: "?", final: "u" },
];
/** Colours, links and the clipboard: the page's own, not a program's. */
const OSC = [4, 5, 8, 10, 11, 12, 13, 14, 17, 19, 52, 104, 110, 111, 112] as const;
const DCS: readonly IFunctionIdentifier[] = [
  { intermediates: "$", final: "q" },
  { intermediates: "+", final: "q" },
];
/** Private modes by which the renderer reports the mouse and the focus. */
const REPORTS: ReadonlySet<number> = new Set([
  9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2031, 2048,
]);

/** Take questions and reports out of what `terminal` is shown. */
export function silence(terminal: Terminal): IDisposable[] {
  const swallow = () => true;
  const reports = (params: (number | number[])[]) =>
    params.some((value) => typeof value === "number" && REPORTS.has(value));
  return [
    ...QUESTIONS.map((id) => terminal.parser.registerCsiHandler(id, swallow)),
    ...OSC.map((id) => terminal.parser.registerOscHandler(id, swallow)),
    ...DCS.map((id) => terminal.parser.registerDcsHandler(id, swallow)),
    terminal.parser.registerCsiHandler({ prefix: "?", final: "h" }, reports),
  ];
}

interface CoreService {
  readonly onUserInput: (listener: () => void) => IDisposable;
}

/** Hand on what a person typed, pasted or composed, and nothing else. */
export function onPersonalInput(
  terminal: Terminal,
  listener: (text: string) => void,
): IDisposable[] {
  // The flag is not in the renderer's public types; without it nothing may be sent at all.
  const core = (terminal as unknown as { _core?: { coreService?: CoreService } })._core;
  const service = core?.coreService;
  if (typeof service?.onUserInput !== "function") {
    throw new Error("this renderer does not tell a person's input from its own replies");
  }
  let personal = false;
  return [
    service.onUserInput(() => {
      personal = true;
    }),
    terminal.onData((text) => {
      const mine = personal;
      personal = false;
      if (mine) listener(text);
    }),
  ];
}
