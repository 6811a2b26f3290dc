"""A second gateway's part in a race: join the cluster, open and close an owner's sessions.

    python -m tests.support.second_gateway '{"address": ..., "token_file": ..., ...}'

Says ``joined``, waits for a line, and then prints each thing it did as a line of JSON with the
machine's monotonic times before and after.
"""

import asyncio
import json
import sys
import time

from fabric.actors import rayenv
from fabric.actors.remote import RemoteRegistry
from fabric.core.errors import FabricError
from fabric.core.ids import HostName, OwnerId, new_request_id
from fabric.core.model import Caller, OpenRequest
from fabric.core.settings import ClusterSettings, Settings


async def race(registry, caller, host, rounds, tell):
    """Open and close sessions; ``tell`` gets a row for each."""
    for _ in range(rounds):
        row = {"asked": time.monotonic()}
        try:
            result = await registry.open(
                caller, OpenRequest(new_request_id(), "shell", host=HostName(host))
            )
        except FabricError as error:
            tell({"refused": error.reason, **row})
            continue
        row |= {"opened": time.monotonic(), "mode": result.info.confinement.mode.value}
        row["asked_close"] = time.monotonic()
        await registry.close(caller, result.info.session_id, new_request_id())
        tell({**row, "closed": time.monotonic()})


def main():
    facts = json.loads(sys.argv[1])
    settings = Settings(cluster=ClusterSettings(host=facts["host"]))
    rayenv.join(settings.cluster, facts["address"], token_file=facts["token_file"])
    try:
        sys.stdout.write("joined\n")
        sys.stdout.flush()
        sys.stdin.readline()
        caller = Caller(OwnerId(facts["owner_id"]), facts["epoch"])
        work = race(
            RemoteRegistry(settings), caller, facts["host"], facts["rounds"],
            lambda row: sys.stdout.write(json.dumps(row) + "\n"),
        )  # fmt: skip
        asyncio.run(work)
    finally:
        rayenv.leave()


if __name__ == "__main__":
    main()
