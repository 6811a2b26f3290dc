"""What to try, for each reason an error can have."""

from fabric.core.errors import FabricError

HINTS = {
    "INVALID_REQUEST": "fabric COMMAND --help shows the arguments",
    "INVALID_ARGS": "fabric tools shows each tool's arguments",
    "UNKNOWN_TOOL": "fabric tools lists the tools",
    "INVALID_SETTINGS": "fabric config show lists every setting and where it comes from",
    "INPUT_TOO_LARGE": "send the text in parts, or write it to a file on the node",
    "INPUT_LINE_TOO_LONG": "break the line, or write it to a file with a here-document",
    "REQUEST_ID_CONFLICT": "use a new request id for other content",
    "UNAUTHENTICATED": "set FABRIC_TOKEN or FABRIC_TOKEN_FILE to a token the gateway knows",
    "PERMISSION_DENIED": "ask for a policy that allows it, or use a lesser --mode",
    "FOREIGN_SESSION": "fabric list shows your sessions; --agent chooses whose they are",
    "OWNER_NOT_LIVE": "another program took this agent over; choose one of your own with --agent",
    "SESSION_NOT_FOUND": "fabric list shows your sessions",
    "SESSION_LOST": "its node or worker died; open a new one",
    "TASK_NOT_FOUND": "fabric tasks shows your tasks",
    "NODE_NOT_FOUND": "fabric nodes shows the nodes",
    "NAME_TAKEN": "choose another --name, or close the session that has it",
    "SEND_ACTIVE": "wait for the other send, or fabric signal SESSION SIGINT",
    "SESSION_EXITED": "fabric read still shows its output; then close it and open a new one",
    "SESSION_CLOSING": "open a new one",
    "INPUT_BLOCKED": "the program does not read; fabric signal SESSION SIGINT",
    "QUEUE_BLOCKED": "reset the terminal",
    "NOT_CONTROLLER": "take control first",
    "SIGNAL_REFUSED": "close the session to end its shell",
    "SANDBOX_MODE_LOCKED": "close this agent's sessions first, or use another --agent",
    "SANDBOX_UNAVAILABLE": "open with --mode danger-full-access, or on a node that can confine",
    "SPAWN_FAILED": "check --cwd, and that the node has the program",
    "UNSUPPORTED": "choose what the message names; fabric nodes shows what each node can do",
    "STALE_GENERATION": "look at the session again, then repeat",
    "CURSOR_EXPIRED": "start from the oldest offset that is still kept",
    "OUTCOME_UNKNOWN": "look at the session (fabric read) before you repeat anything",
    "CALL_CANCELLED": "repeat it with a longer --timeout",
    "LIMIT_REACHED": "wait a moment, or close what is not used",
    "QUEUE_FULL": "wait for what is queued",
    "CAPACITY_REACHED": "close sessions, or add a node",
    "PTY_EXHAUSTED": "close sessions on that node",
    "REGISTRY_UNAVAILABLE": "try again in a moment; fabric status",
    "GATEWAY_UNAVAILABLE": "fabric up starts one here; --gateway or FABRIC_GATEWAY names another",
    "DRAINING": "try again; another gateway takes over",
    "STARTUP_TIMEOUT": "give it longer with --timeout",
    "DEADLINE": "give it longer with --timeout",
    "CLEANUP_INCOMPLETE": "close it again; the message names what survived",
    "ALREADY_UP": "fabric status shows it; FABRIC_STATE_DIR keeps a second one apart",
    "NOT_STOPPED": "fabric down again; the logs are in the state folder",
    "INTERNAL": "look into the logs in the state folder",
}


def hint_for(error: FabricError) -> str:
    """Return one line that says what to try, or nothing."""
    return error.metadata.get("hint") or HINTS.get(error.reason, "")
