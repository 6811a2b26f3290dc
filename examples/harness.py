"""A harness in Python: what an agent's loop does with a terminal, and what it must not assume.

    FABRIC_GATEWAY=127.0.0.1:7443 FABRIC_TOKEN=... python examples/harness.py

``FABRIC_CA_FILE`` names the CA of a gateway with TLS. The same loop over generated stubs, for
languages without a client, is in ``examples/harness_ts``.
"""

import asyncio
import os
import sys

from fabric.client import FabricClient
from fabric.client.link import Tls
from fabric.core.errors import FabricError, OutcomeUnknownError, SessionLostError
from fabric.core.model import SendResult, WaitReason


def say(result: SendResult) -> str:
    """Tell a model what happened, and how sure that is."""
    sure = {
        WaitReason.STDIN_READ: "the program wants input",
        WaitReason.SESSION_EXIT: "the session has ended",
        WaitReason.INFERRED_IDLE: "silent for a while; perhaps it wants input",
        WaitReason.TIMEOUT: "still running; nothing is known",
    }
    return f"{result.viewport.rstrip()}\n[{sure.get(result.wait_reason, result.wait_reason)}]"


async def main() -> int:
    """Open, send, wait for a pattern, look at a long job, close."""
    ca = os.environ.get("FABRIC_CA_FILE")
    client = FabricClient.connect(
        os.environ.get("FABRIC_GATEWAY", "127.0.0.1:7443"),
        token=os.environ.get("FABRIC_TOKEN"),
        tls=Tls(ca) if ca else None,
        agent="example-py",
        mode="danger-full-access",
    )
    try:
        async with client as fabric:
            repl = await fabric.open("python")
            for line in ("6 * 7", "import platform", "platform.system()"):
                print(say(await repl.send(line, timeout_s=20)))
            shell = await fabric.open("shell")
            # A long job: start it, wait for what matters, and go on.
            task = await shell.send_background("for i in 1 2 3; do echo step $i; done; echo built")
            found = await shell.wait_for(pattern="built", since_offset=0, timeout_s=20)
            print(f"matched: {found.matched}, task {task.id}")
            await shell.close()
            await repl.close()
    except OutcomeUnknownError as error:
        print(f"it may have run; look before you repeat: {error.message}", file=sys.stderr)
        return 1
    except SessionLostError as error:
        print(f"its machine is gone; open another: {error.message}", file=sys.stderr)
        return 1
    except FabricError as error:
        print(f"{error.reason}: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
