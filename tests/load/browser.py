"""The page's figures: a key's echo on the screen, and a flood beside it.

    python -m tests.load.browser [--keys N] [--flood-mb N] [--json FILE]

Headless Chromium before the gateway of an embedded fabric. A key's echo is timed inside the
page, from the keydown event to the frame that shows it. During a flood the echo is one line
among many and gone at once; it counts as shown when the page has painted past it. Bounded
in count and time; nothing here is a test. Exits with 1 when a limit was missed.
"""

import argparse
import asyncio
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from fabric.client import FabricClient
from fabric.core.model import SandboxMode
from tests.browser.real import Person
from tests.load.embedded import Embedded, embedded
from tests.load.measure import Report, machine, ms, p50, p99, processes, pss_mb
from tests.support.chromium import chromium, missing, screen_text, window
from tests.support.eventually import eventually
from tests.support.page import page as bare_page

PACE_S = 0.05
MARK_PACE_S = 0.02
ECHO_S = 30.0
FLOODS = 5
MB = 1_000_000
MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
FULL = SandboxMode.DANGER_FULL_ACCESS
FLOOD = """
import sys, time
size, chunk = int(sys.argv[1]), b"".join(b"%063d\\n" % n for n in range(256))
for _ in range(size // len(chunk)):
    sys.stdout.buffer.write(chunk)
sys.stdout.buffer.flush()
print("flood over")
"""
# From the keydown to the task after the frame in which one more of the letter is in the rows.
ECHO = """letter => { window.echoed = new Promise(done => {
  const rows = document.querySelector("#stage .xterm-rows");
  const count = () => rows.textContent.split(letter).length;
  const before = count();
  let began = 0;
  const after = new MessageChannel();
  after.port1.onmessage = () => done(performance.now() - began);
  const watch = new MutationObserver(() => {
    if (count() > before) { watch.disconnect(); after.port2.postMessage(0); }
  });
  watch.observe(rows, { childList: true, subtree: true, characterData: true });
  addEventListener("keydown", () => { began = performance.now(); },
    { capture: true, once: true });
}); }"""
# Stands between the page and its socket: when a mark was typed, came, and was painted past;
# and how long the page was busy without a pause. The page acknowledges every frame, not every
# eighth of the window, so that its acknowledgements tell when each was painted.
SPY = """(() => {
  const marks = window.marks = [];
  const flood = window.flood = { bytes: 0, frames: 0, snapshots: 0, busy: 0 };
  addEventListener("keydown", event => {
    if (event.key === "Enter" && !flood.began) flood.began = performance.now();
    if (flood.began && !flood.over && /^[A-Z]$/.test(event.key)) {
      marks.push({ letter: event.key, typed: performance.now() });
    }
  }, { capture: true });
  const Real = window.WebSocket;
  window.WebSocket = class extends Real {
    constructor(...given) {
      super(...given);
      this.addEventListener("message", event => {
        const frame = JSON.parse(event.data);
        if (frame.type === "attached") {
          frame.settings.window_bytes = 8;
          Object.defineProperty(event, "data", { value: JSON.stringify(frame) });
        }
        if (frame.data === undefined) return;
        const text = atob(frame.data);
        if (!flood.began || flood.over) return;
        flood.frames += 1;
        flood.bytes += text.length;
        flood.snapshots += frame.type === "snapshot";
        for (const mark of marks) {
          if (mark.sequence === undefined && text.includes(mark.letter)) {
            mark.sequence = frame.sequence;
            mark.came = performance.now();
          }
        }
        if (text.includes("flood over")) flood.over = performance.now();
      });
    }
    send(text) {
      const frame = JSON.parse(text);
      if (frame.type === "ack") {
        for (const mark of marks) {
          if (mark.sequence <= frame.sequence && mark.shown === undefined) {
            mark.shown = 0;
            requestAnimationFrame(() => { mark.shown = performance.now(); });
          }
        }
      }
      super.send(text);
    }
  };
  let last = performance.now();
  setInterval(() => {
    const now = performance.now();
    if (flood.began && !flood.over) flood.busy = Math.max(flood.busy, now - last);
    last = now;
  }, 4);
})()"""


def client(fabric: Embedded, agent: str) -> FabricClient:
    return FabricClient.connect(fabric.address, token=fabric.token, agent=agent, mode=FULL)


async def keys(page: Page, count: int) -> list[float]:
    """Type single keys at a quick person's pace; the seconds until each was on the screen."""
    times = []
    for number in range(count):
        await page.evaluate(ECHO, "k")
        await page.keyboard.press("k")
        echoed = page.evaluate("echoed")
        times.append(float(await asyncio.wait_for(echoed, ECHO_S)) / 1000)
        await asyncio.sleep(PACE_S)
        if number % 100 == 99 or number == count - 1:
            await page.keyboard.press("Control+u")
            await eventually(lambda: cleared(page), what="an empty line again")
    return times


async def cleared(page: Page) -> bool:
    """Tell whether no typed letter is left on the screen."""
    return "k" not in (await screen_text(page)).rpartition("\n")[2]


async def echo(report: Report, browser: Browser, fabric: Embedded, count: int) -> None:
    """Keys at the idle prompt (bash echoes) and before a program (the kernel echoes)."""
    async with client(fabric, "echo") as owner, window(browser) as context:
        person = await Person.controls(context, owner)
        for what in ("shell", "program"):
            if what == "program":
                # A key typed before the shell has given echo back to the kernel shows nowhere.
                await person.types("echo go-$((1+1)); cat > /dev/null\r")
                await person.sees("go-2")
            await keys(person.page, 10)
            times = await keys(person.page, count)
            report.row(
                f"{count} keys, {what} echoes: key to screen",
                "p50 30 ms, p99 80 ms",
                ms(p50(times)) <= 30 and ms(p99(times)) <= 80,
                p50_ms=ms(p50(times)),
                p99_ms=ms(p99(times)),
                longest_ms=ms(max(times)),
            )


@dataclass
class Memory:
    """The fabric's own processes, watched until told to stop."""

    pids: list[int]
    before: float = 0.0
    most: float = 0.0

    async def watch(self) -> None:
        self.before = self.most = self._now()
        while True:
            await asyncio.sleep(0.05)
            self.most = max(self.most, self._now())

    def _now(self) -> float:
        return sum(pss_mb(pid) for pid in self.pids if Path(f"/proc/{pid}").exists())


async def flooded(person: Person, script: Path, size: int) -> tuple[list[Any], dict[str, float]]:
    """Let a person start one flood and type marks into it; what the page saw of it."""
    await person.page.reload()
    await person.stands("Controller", "Connected", "Idle prompt")
    await person.types(f"{sys.executable} {script} {size}\r")
    for letter in MARKS:
        await person.page.keyboard.press(letter)
        await asyncio.sleep(MARK_PACE_S)
        if await person.page.evaluate("flood.over"):
            break
    await asyncio.wait_for(person.page.wait_for_function("flood.over"), 60)
    await person.page.keyboard.press("Control+c")  # marks nobody read are on the shell's line
    await person.stands("Controller", "Connected", "Idle prompt")
    await asyncio.sleep(PACE_S)
    return await person.page.evaluate("marks"), await person.page.evaluate("flood")


async def flood(report: Report, browser: Browser, fabric: Embedded, size: int) -> None:
    """Flood one terminal before a page that shows it, one that never says so, and another's."""
    async with (
        client(fabric, "flooded") as owner,
        client(fabric, "neighbour") as other,
        window(browser) as context,
        window(browser) as elsewhere,
    ):
        await context.add_init_script(SPY)
        person = await Person.controls(context, owner)
        neighbour = await Person.controls(elsewhere, other)
        quiet = await keys(neighbour.page, 40)
        marks: list[Any] = []
        seen: list[dict[str, float]] = []
        memory = Memory(processes("fabric.cli serve") + processes("ray::SessionHost"))
        link = (await owner.view_ticket(readonly=True)).url
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder, "flood.py")
            script.write_text(FLOOD)  # noqa: ASYNC240
            async with bare_page(link, acks=False):  # it stalls: nothing is acknowledged
                watching = asyncio.create_task(memory.watch())
                typing = asyncio.create_task(keys(neighbour.page, 60))
                for _ in range(FLOODS):
                    one, what = await flooded(person, script, size)
                    marks += one
                    seen.append(what)
                beside = await typing
                watching.cancel()
    shown = [(mark["shown"] - mark["typed"]) / 1000 for mark in marks if mark.get("shown")]
    came = [(mark["came"] - mark["typed"]) / 1000 for mark in marks if mark.get("came")]
    report.row(
        f"{FLOODS} floods of {size // MB} MB: key to screen in them",
        "250 ms",
        bool(shown) and ms(max(shown)) <= 250,
        keys=len(shown),
        lost=len(marks) - len(shown),
        p50_ms=ms(p50(shown or [0])),
        longest_ms=ms(max(shown or [0])),
        longest_to_page_ms=ms(max(came or [0])),
    )
    report.row(
        "  what the page got of one",
        seconds=round(p50((one["over"] - one["began"]) / 1000 for one in seen), 2),
        megabytes=round(p50(one["bytes"] for one in seen) / MB, 1),
        frames=round(p50(one["frames"] for one in seen)),
        snapshots=round(p50(one["snapshots"] for one in seen)),
        longest_busy_ms=round(max(one["busy"] for one in seen), 1),
    )
    report.row(
        "  memory of gateway and workers",
        "64 MB more",
        memory.most - memory.before <= 64,
        before_mb=round(memory.before),
        most_mb=round(memory.most),
    )
    report.row(
        "  somebody else's page: key to screen",
        "p99 80 ms",
        ms(p99(beside)) <= 80,
        quiet_p50_ms=ms(p50(quiet)),
        quiet_p99_ms=ms(p99(quiet)),
        p50_ms=ms(p50(beside)),
        p99_ms=ms(p99(beside)),
    )


async def run(report: Report, fabric: Embedded, options: argparse.Namespace) -> None:
    """Measure everything."""
    async with chromium() as browser:
        await echo(report, browser, fabric, options.keys)
        await flood(report, browser, fabric, options.flood_mb * MB)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keys", type=int, default=300)
    parser.add_argument("--flood-mb", type=int, default=10)
    parser.add_argument("--json")
    options = parser.parse_args()
    if reason := missing():
        print(reason)
        return 1
    report = Report()
    print(machine())
    with embedded() as fabric:
        asyncio.run(run(report, fabric, options))
    if options.json:
        report.dump(options.json)
    return 1 if report.missed else 0


if __name__ == "__main__":
    sys.exit(main())
