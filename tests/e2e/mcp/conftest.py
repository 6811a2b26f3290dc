"""A real gateway in this process; MCP servers and clients in the environment of the extra."""

import asyncio
import json
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.eventually import scaled
from tests.support.local_fabric import local_fabric
from tests.support.paths import ROOT

PYTHON = ROOT / ".venv-mcp" / "bin" / "python"
READY_S = 60.0
LIMIT_S = 90.0


class Extra:
    """Programs of the environment of the extra, against one gateway."""

    def __init__(self, gateway: str, state_dir: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("FABRIC_")}
        ours = {"FABRIC_GATEWAY": gateway, "FABRIC_STATE_DIR": str(state_dir)}
        self.environ = kept | ours | {"PYTHONWARNINGS": "ignore::DeprecationWarning"}

    async def start(self, *arguments: str, **environ: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            str(PYTHON),
            *arguments,
            cwd=ROOT,
            env=self.environ | environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=1 << 22,
        )

    async def scenario(self, *arguments: str, **environ: str) -> dict:
        """Run one scenario to its end and return its facts."""
        process = await self.start("-m", "tests.e2e.mcp.scenarios", *arguments, **environ)
        async with asyncio.timeout(scaled(LIMIT_S)):
            out, err = await process.communicate()
        assert process.returncode == 0, err.decode()[-3000:]
        return json.loads(out)

    @asynccontextmanager
    async def serving(self, *options: str, **environ: str) -> AsyncIterator[str]:
        """Run an HTTP server; give its address."""
        server = await self.start(
            *("-m", "fabric.cli", "mcp", "--mode", "danger-full-access"),
            *("--http", "127.0.0.1:0", *options),
            **environ,
        )
        try:
            async with asyncio.timeout(scaled(READY_S)):
                url = (await server.stdout.readline()).decode().strip()
                assert url.startswith("http://"), (await server.stderr.read()).decode()
                yield url
        finally:
            if server.returncode is None:
                server.send_signal(signal.SIGTERM)
            async with asyncio.timeout(scaled(READY_S)):
                _, err = await server.communicate()
        assert server.returncode == 130, err.decode()[-3000:]
        assert "Traceback" not in err.decode(), err.decode()[-3000:]


@pytest.fixture
async def local():
    if not PYTHON.exists():
        missing = "no .venv-mcp; make env-mcp makes it"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    async with local_fabric() as fabric:
        yield fabric


@pytest.fixture
async def extra(local):
    folder = Path(tempfile.mkdtemp(prefix="pfm", dir="/tmp"))
    yield Extra(local.address, folder)
    shutil.rmtree(folder, ignore_errors=True)
