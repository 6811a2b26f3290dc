"""What every command gets: arguments, settings, state folder and a way to speak."""

import argparse
import asyncio
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from fabric.cli.output import Output
from fabric.cli.parser import flags_of
from fabric.cli.state import StateDir, default_folder
from fabric.core.ids import AgentId, parse_label
from fabric.core.sources import Loaded, load

T = TypeVar("T")
INTERRUPTED = 130
DEFAULT_AGENT = "cli"


class Context:
    """One invocation."""

    def __init__(
        self, arguments: argparse.Namespace, output: Output, environ: Mapping[str, str]
    ) -> None:
        self.arguments = arguments
        self.output = output
        self.environ = environ

    @cached_property
    def loaded(self) -> Loaded:
        """The settings from all sources. Raises: SettingsError."""
        return load(
            config=getattr(self.arguments, "config", None),
            environ=self.environ,
            flags=flags_of(self.arguments),
        )

    @cached_property
    def state(self) -> StateDir:
        """The state folder: flag, then FABRIC_STATE_DIR, then the setting, then the default."""
        flag = getattr(self.arguments, "state_dir", None)
        setting = self.loaded.settings.cluster.state_dir
        if flag:
            return StateDir(Path(flag))
        if setting and not self.environ.get("FABRIC_STATE_DIR"):
            return StateDir(Path(setting))
        return StateDir(default_folder(self.environ))

    @property
    def agent(self) -> AgentId:
        """Whose sessions. Raises: InvalidRequestError."""
        flag = getattr(self.arguments, "agent", None)
        return AgentId(
            parse_label(flag or self.environ.get("FABRIC_AGENT") or DEFAULT_AGENT, "agent")
        )

    def own_flags(self) -> list[str]:
        """Return the settings flags to hand on to a process of ours."""
        flags = []
        if getattr(self.arguments, "config", None):
            flags += ["--config", str(Path(self.arguments.config).absolute())]
        for key, value in flags_of(self.arguments).items():
            flags += ["--set", f"{key}={value}"]
        return [*flags, "--state-dir", str(self.state.folder)]


def run_interruptible(
    make: Callable[[], Coroutine[Any, Any, T]], output: Output, waiting_for: str
) -> T:
    """Run a coroutine; the first Ctrl-C cancels it and says what it waits for, the second forces.

    Raises: KeyboardInterrupt when it was interrupted.
    """

    async def body() -> T:
        loop = asyncio.get_running_loop()
        task = loop.create_task(make())
        interrupts = 0

        def interrupt() -> None:
            nonlocal interrupts
            interrupts += 1
            if interrupts > 1:
                output.note("forced")
                os._exit(INTERRUPTED)
            output.note(f"stopping: waiting for {waiting_for} (Ctrl-C again to force)")
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        try:
            return await task
        except asyncio.CancelledError:
            if interrupts:
                raise KeyboardInterrupt from None
            raise
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    return asyncio.run(body())
