"""The registry's tables as numbers: no ids, no names. Every state is listed, empty ones too."""

from collections import Counter

from fabric.core.census import Census
from fabric.core.model import TaskState
from fabric.registry.books import Books
from fabric.registry.session import SessionState


def census_of(books: Books) -> Census:
    """Count owners, sessions and tasks; a walk over the tables, a millisecond for thousands."""
    owners = sum(owner.is_live for owner in books.table.owners)
    sessions = Counter(session.state for session in books.table.sessions.values())
    tasks = books.tasks.states()
    return Census(
        owners,
        tuple((state.value, sessions[state]) for state in SessionState),
        tuple((state.value, tasks[state]) for state in TaskState),
    )
