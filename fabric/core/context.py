"""What a call knows about itself without being told by its parameters."""

from contextvars import ContextVar

from_peer: ContextVar[bool] = ContextVar("from_peer", default=False)
"""True in a call that another gateway forwarded: serve it here, never forward it again."""
