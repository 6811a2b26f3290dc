"""Every RPC has a handler, and the handler says what its callers must show."""

from fabric.core.clock import ManualClock
from fabric.core.ids import HostName, Principal
from fabric.core.model import SandboxMode
from fabric.core.settings import Settings
from fabric.gateway.admin import CAPABILITIES, FabricService
from fabric.gateway.bearer import Identity
from fabric.gateway.calls import Access, Kind
from fabric.gateway.events import EventService
from fabric.gateway.limits import Limits, limits_of
from fabric.gateway.lingering import Lingering
from fabric.gateway.news import News
from fabric.gateway.owners import OwnerService, allowed_mode
from fabric.gateway.ptys import PtyService
from fabric.gateway.shared import SharedTerminals, SharedTerminalService
from fabric.gateway.tasks import TaskService
from fabric.gateway.terminals import TerminalService
from fabric.gateway.tokens import KeyRing
from fabric.gateway.tooling import ToolService
from fabric.wire.methods import METHODS
from tests.support.fake_fabric import FakeFabric
from tests.support.paths import ROOT


def _routes():
    fabric, limits = FakeFabric(), Limits()
    services = [
        OwnerService(fabric, KeyRing(ManualClock()), limits),
        TerminalService(fabric, fabric, limits, Lingering(1.0)),
        EventService(fabric, News(fabric)),
        TaskService(fabric, fabric, limits),
        PtyService(fabric, limits),
        SharedTerminalService(
            SharedTerminals(fabric, fabric), fabric, fabric, Lingering(1.0), None
        ),
        ToolService(fabric, fabric, limits, Lingering(1.0)),
        FabricService(fabric, limits, HostName("h"), lambda: False),
    ]
    return {
        f"{service.name}.{name}": route
        for service in services
        for name, route in service.routes().items()
    }


def test_every_rpc_is_served():
    assert set(_routes()) == set(METHODS)


def test_only_what_describes_the_fabric_or_gives_an_owner_goes_without_one():
    routes = _routes()
    without = {name for name, route in routes.items() if route.access is Access.PRINCIPAL}
    assert without == {
        "OwnerService.Acquire", "FabricService.GetServerInfo", "FabricService.ListNodes",
        "ToolService.ListTools",
    }  # fmt: skip


def test_another_gateway_reaches_sessions_only():
    for name, route in _routes().items():
        if route.access is Access.DATA:
            assert name.partition(".")[0] in (
                "TerminalService", "TaskService", "PtyService", "SharedTerminalService",
            )  # fmt: skip
            assert name not in ("TerminalService.Open", "TerminalService.Close")


def test_a_drain_ends_at_once_only_what_changes_nothing():
    waits = {name for name, route in _routes().items() if route.kind is Kind.WAIT}
    assert waits == {
        "OwnerService.KeepAlive", "TerminalService.WaitFor", "TaskService.TaskOutput",
        "PtyService.ReadBytes", "PtyService.Follow", "PtyService.Attach",
        "EventService.FollowEvents", "SharedTerminalService.View",
    }  # fmt: skip


def test_requests_that_change_something_have_a_request_id():
    without = {
        name for name, method in METHODS.items()
        if "request_id" not in method.request.DESCRIPTOR.fields_by_name
    }  # fmt: skip
    assert without == {
        "OwnerService.Renew", "OwnerService.KeepAlive", "TerminalService.Read",
        "TerminalService.List", "TerminalService.Status", "TerminalService.Snapshot",
        "TerminalService.WaitFor", "TaskService.TaskOutput", "TaskService.ListTasks",
        "PtyService.ReadBytes", "PtyService.Follow", "PtyService.Attach",
        "FabricService.GetServerInfo", "FabricService.ListNodes",
        "ToolService.ListTools", "ToolService.CallToolStream",
        "EventService.FollowEvents", "EventService.AcknowledgeEvents",
        "SharedTerminalService.Read", "SharedTerminalService.View",
        "SharedTerminalService.CreateViewTicket",
    }  # fmt: skip


def test_the_capabilities_are_the_ones_in_the_readme():
    text = " ".join((ROOT / "proto" / "README.md").read_text().split())
    listed = ", ".join(f"`{word}`" for word in CAPABILITIES)
    assert f"Capabilities in `GetServerInfo`: {listed}." in text


def test_limits_come_from_the_settings():
    limits = limits_of(Settings())
    assert limits == Limits(types=limits.types)
    assert {"shell", "python"} <= set(limits.types)


def test_a_mode_is_kept_within_the_principals_bound():
    free = Identity(Principal("p"))
    bound = Identity(Principal("p"), SandboxMode.WORKSPACE_WRITE)
    full = SandboxMode.DANGER_FULL_ACCESS
    assert allowed_mode(free, full, SandboxMode.READ_ONLY) is full
    assert allowed_mode(free, None, full) is None
    assert allowed_mode(bound, None, SandboxMode.READ_ONLY) is None
    assert allowed_mode(bound, None, full) is SandboxMode.WORKSPACE_WRITE
