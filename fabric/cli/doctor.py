"""``fabric doctor``: is this machine fit for a fabric, and is the fabric well?

Three parts, each by itself: this machine, the credentials that the settings name, and the
fabric that can be reached from here: through its gateway as a caller (a real session is
opened, used and closed), and through Ray as an operator, where this machine has its token.
Exit code 0: nothing failed, though there may be warnings; 1: something failed.
"""

import asyncio
import secrets
import time
from collections.abc import Iterator
from dataclasses import asdict

from fabric.actors import checkup
from fabric.cli import findings, machine
from fabric.cli.connect import gateway_of, tls_of, token_of
from fabric.cli.context import Context, run_interruptible
from fabric.cli.findings import Finding, Verdict
from fabric.cli.output import visible
from fabric.client.client import FabricClient
from fabric.core.errors import FabricError, GatewayUnavailableError
from fabric.core.model import NodeState

FAILED = 1
CALL_S = 10.0
LEASE_S = 60.0
_MARKS = {Verdict.OK: "ok  ", Verdict.WARN: "WARN", Verdict.FAIL: "FAIL"}


def doctor(context: Context) -> int:
    """Check, print each finding, and say by the exit code whether something failed."""
    found = list(_findings(context))
    gravest = findings.worst(found)
    counts = {verdict.value: sum(item.verdict is verdict for item in found) for verdict in Verdict}
    row = {"verdict": gravest.value, "counts": counts, "findings": [asdict(item) for item in found]}
    lines = [line for item in found for line in _lines(item)]
    lines.append(", ".join(f"{count} {name}" for name, count in counts.items()))
    context.output.result(row, "\n".join(lines), gravest.value)
    return FAILED if gravest is Verdict.FAIL else 0


def _lines(item: Finding) -> Iterator[str]:
    yield f"{_MARKS[item.verdict]}  {visible(item.check)}: {visible(item.fact)}"
    if item.verdict is not Verdict.OK:
        yield f"      why: {visible(item.why)}"
        yield f"      do:  {visible(item.remedy)}"


def _findings(context: Context) -> Iterator[Finding]:
    settings, folder = context.loaded.settings, context.state.folder
    context.output.progress("looking at this machine")
    yield from machine.findings_here(settings, folder)
    yield from machine.findings_of_credentials(settings, folder)
    try:
        gateway = gateway_of(context)
    except GatewayUnavailableError as error:
        yield findings.warn(
            "gateway", error.message, "only this machine was checked",
            "fabric up, or name one with --gateway",
        )  # fmt: skip
    else:
        context.output.progress(f"asking the gateway {gateway}")
        yield from run_interruptible(
            lambda: _ask_gateway(context, gateway), context.output, "the session to close"
        )
    yield from _ask_cluster(context)


async def _ask_gateway(context: Context, gateway: str) -> list[Finding]:
    found: list[Finding] = []
    try:
        client = FabricClient.connect(
            gateway,
            token=token_of(context, gateway),
            tls=tls_of(context),
            agent=f"doctor-{secrets.token_hex(4)}",
            lease_s=LEASE_S,
            call_timeout_s=CALL_S,
        )
        async with client:
            found.append(_server(context, client))
            rows = await client.nodes()
            found += [_node(row) for row in rows]
            found.append(await _session(client))
    except FabricError as error:
        remedy = error.metadata.get("hint", "fabric status; the gateway's log; its token and CA")
        fact = f"{gateway}: {error.message} [{error.reason}]"
        found.append(findings.fail("gateway", fact, "callers get the same answer", remedy))
    return found


def _server(context: Context, client: FabricClient) -> Finding:
    server, ours = client.server, checkup.build_here().version
    fact = f"{server.host} serves, version {server.version}"
    if server.draining:
        return findings.warn(
            "gateway", f"{fact}, draining", "it takes no new calls and ends", "use another"
        )
    if server.version != ours:
        return findings.warn(
            "gateway", fact, f"this command is {ours}", "install the same version, fabric upgrade"
        )
    return findings.ok("gateway", fact)


def _node(node: NodeState) -> Finding:
    check = f"node {node.host}"
    kinds = ", ".join(node.sandbox_kinds) or "nothing"
    fact = (
        f"{node.os} {node.arch}, {node.sessions} of {node.max_sessions} sessions,"
        f" {node.warm} warm, {node.ptys_free} terminals free, confines by {kinds}"
    )
    if not node.alive:
        return findings.fail(
            check, "does not answer",
            "its sessions rest, and are lost after registry.lost_timeout_s",
            "look at that machine: power, network, fabric status, the log of its supervisor",
        )  # fmt: skip
    if node.draining:
        return findings.warn(check, f"{fact}; draining", "no new sessions", "fabric drain --undo")
    if node.sessions >= node.max_sessions:
        return findings.warn(check, fact, "it is full", "close sessions, or add a node")
    return findings.ok(check, fact)


async def _session(client: FabricClient) -> Finding:
    """Time a real session, which is closed again whatever happens."""
    word = secrets.token_hex(4)
    began = time.monotonic()
    session = await client.open("shell")
    opened = time.monotonic()
    try:
        # In two parts, so that the echo of what was typed is not taken for the answer.
        answer = await session.send(f"echo {word[:4]}''{word[4:]}", timeout_s=CALL_S)
        echoed = time.monotonic()
    finally:
        before = time.monotonic()
        await session.close()
    closed = time.monotonic()
    if word not in answer.viewport.split():
        return findings.fail(
            "a session", f"echo answered {answer.wait_reason}, without its word",
            "sends do not work", "fabric open, fabric send by hand; the log of the node",
        )  # fmt: skip
    return findings.turn(opened - began, echoed - opened, closed - before)


def _ask_cluster(context: Context) -> Iterator[Finding]:
    """Look at the nodes through Ray, where this machine can join their cluster."""
    from fabric.actors import rayenv

    settings, state = context.loaded.settings, context.state
    record = state.record() if state.folder.is_dir() and state.is_up() else None
    address = settings.cluster.address or (record.cluster if record else "")
    if not address:
        return
    context.output.progress(f"joining the cluster at {address}")
    token = state.folder / "ray.token"
    try:
        rayenv.join(settings.cluster, address, token_file=str(token) if token.exists() else "")
    except FabricError as error:
        yield findings.fail(
            "cluster", error.message, "no gateway can join either: no opens, no new nodes",
            "is the head up? same ray.token, same Ray? is its port open to this machine?",
        )  # fmt: skip
        return
    try:
        nodes = asyncio.run(checkup.ask_nodes(settings))
    except FabricError as error:
        yield findings.fail("cluster", error.message, "opens fail", "look at the head's GCS log")
        return
    finally:
        rayenv.leave()
    yield findings.ok("cluster", f"{address}, {len(nodes)} nodes")
    ours = checkup.build_here()
    for node in nodes:
        if node.build is None:
            yield findings.fail(
                f"node actor of {node.host}", node.problem, "its versions are not known",
                "fabric upgrade; the Ray logs of that node",
            )  # fmt: skip
            continue
        build = node.build
        yield findings.same(
            node.host,
            (build.version, build.ray, build.python),
            (ours.version, ours.ray, ours.python),
        )
        yield findings.skew(node.host, node.offset_s, node.doubt_s)
