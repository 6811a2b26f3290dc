"""TaskService: convert, call, convert."""

from fabric.api.v1 import task_service_pb2 as pb
from fabric.core.ids import parse_request_id, parse_task_id
from fabric.gateway.calls import Access, Call, Kind, Route, Routes
from fabric.gateway.limits import Limits
from fabric.gateway.lingering import to_the_end
from fabric.gateway.ports import RegistryPort, SessionsPort
from fabric.gateway.terminals import refuse_large
from fabric.wire import records, requests


class TaskService:
    """Start and follow background sends."""

    name = "TaskService"

    def __init__(self, registry: RegistryPort, sessions: SessionsPort, limits: Limits) -> None:
        self._registry = registry
        self._sessions = sessions
        self._limits = limits

    def routes(self) -> Routes:
        """Return the handlers by the names of their RPCs."""
        return {
            "StartTask": Route(self.start, Access.DATA, Kind.WORK),
            "TaskOutput": Route(self.output, Access.DATA, Kind.WAIT),
            "ListTasks": Route(self.list, Access.OWNER, Kind.QUICK),
            "KillTask": Route(self.kill, Access.DATA, Kind.QUICK),
        }

    async def start(self, call: Call, message: pb.StartTaskRequest) -> pb.StartTaskResponse:
        """Start a background send."""
        session_id, request = requests.start_of(message)
        refuse_large(request.data, self._limits, call.identity.principal)
        # Cut in the middle it would leave a task nobody has heard of.
        record = await to_the_end(self._sessions.start_task(call.caller, session_id, request))
        return pb.StartTaskResponse(task=records.task_message(record))

    async def output(self, call: Call, message: pb.TaskOutputRequest) -> pb.TaskOutputResponse:
        """Return new output, waiting for the task's end when asked to."""
        task_id, cursor, wanted = requests.output_of(message)
        wait_s = call.wait_s(wanted, 0.0, self._limits.max_wait_s) if wanted else 0.0
        output = await self._sessions.task_output(call.caller, task_id, cursor, wait_s)
        return records.output_message(output)

    async def list(self, call: Call, message: pb.ListTasksRequest) -> pb.ListTasksResponse:
        """List the owner's tasks."""
        tasks = await self._registry.list_tasks(call.caller)
        return pb.ListTasksResponse(tasks=[records.task_message(item) for item in tasks])

    async def kill(self, call: Call, message: pb.KillTaskRequest) -> pb.KillTaskResponse:
        """Interrupt a task."""
        task_id = parse_task_id(message.task_id)
        request_id = parse_request_id(message.request_id)
        record = await self._sessions.kill_task(call.caller, task_id, request_id)
        return pb.KillTaskResponse(task=records.task_message(record))
