"""Tickets to come in and passes to come back."""

import pytest

from fabric.core.errors import LimitReachedError
from fabric.core.ids import OwnerId
from fabric.core.model import Caller
from fabric.web.tickets import Grant, Kind, Passes, Tickets

MINE = Grant(Caller(OwnerId("own_a"), 1), Kind.SHARED, readonly=False)
THEIRS = Grant(Caller(OwnerId("own_b"), 1), Kind.OVERVIEW)


def _tickets(per_owner=3, total=4):
    return Tickets(10.0, per_owner, total)


def test_a_ticket_counts_once():
    tickets = _tickets()
    ticket = tickets.mint(MINE, 0.0)
    assert tickets.redeem(ticket, 1.0) == MINE
    assert tickets.redeem(ticket, 1.0) is None


def test_a_ticket_counts_for_its_time():
    tickets = _tickets()
    early, late = tickets.mint(MINE, 0.0), tickets.mint(MINE, 0.0)
    assert tickets.redeem(early, 9.99) == MINE
    assert tickets.redeem(late, 10.0) is None
    assert len(tickets) == 0


def test_a_ticket_has_256_bits_and_names_its_gateway():
    here, there = _tickets(), _tickets()
    ticket = here.mint(MINE, 0.0)
    name, _, secret = ticket.partition(".")
    assert (name, len(secret)) == (here.name, 43)
    assert there.redeem(ticket, 0.0) is None
    assert here.redeem(ticket, 0.0) == MINE


def test_only_a_hash_is_kept():
    tickets, passes = _tickets(), Passes(60.0, 8)
    secrets = [tickets.mint(MINE, 0.0), passes.issue(MINE, "v", "proof")]
    for secret in secrets:
        assert secret.rpartition(".")[2] not in repr((vars(tickets), vars(passes)))


@pytest.mark.parametrize("wrong", ["", "x", "a.b", "\ud800", "ü" * 43])
def test_what_is_no_ticket_is_none(wrong):
    assert _tickets().redeem(wrong, 0.0) is None
    assert Passes(60.0, 8).take(wrong, 0.0) is None


def test_the_number_of_unused_tickets_is_bounded_per_owner_and_in_all():
    tickets = _tickets()
    for _ in range(3):
        tickets.mint(MINE, 0.0)
    with pytest.raises(LimitReachedError):
        tickets.mint(MINE, 0.0)
    first = tickets.mint(THEIRS, 5.0)
    with pytest.raises(LimitReachedError):
        tickets.mint(THEIRS, 5.0)
    assert tickets.redeem(first, 5.0) == THEIRS
    assert tickets.mint(MINE, 10.0)  # the old ones have run out


def test_a_pass_counts_once_and_keeps_what_the_view_needs():
    passes = Passes(60.0, 8)
    given = passes.issue(MINE, "v", "proof")
    held = passes.take(given, 0.0)
    assert held is not None
    assert (held.grant, held.view, held.proof) == (MINE, "v", "proof")
    assert passes.take(given, 0.0) is None


def test_a_pass_counts_while_connected_and_for_its_time_after():
    passes = Passes(60.0, 8)
    one, two, three = (passes.issue(MINE, view, "") for view in ("a", "b", "c"))
    assert passes.take(one, 1e6) is not None
    passes.left("b", 100.0)
    passes.left("c", 100.0)
    assert passes.take(two, 159.9) is not None
    assert passes.take(three, 160.0) is None


def test_a_view_that_must_not_come_back_has_no_pass():
    passes = Passes(60.0, 8)
    given = passes.issue(MINE, "v", "")
    other = passes.issue(MINE, "w", "")
    passes.withdraw("v")
    assert passes.take(given, 0.0) is None
    assert passes.take(other, 0.0) is not None


def test_the_longest_gone_makes_room():
    passes = Passes(60.0, 3)
    here, gone, later = (passes.issue(MINE, view, "") for view in ("a", "b", "c"))
    passes.left("b", 1.0)
    passes.left("c", 2.0)
    passes.issue(MINE, "d", "")
    assert len(passes) == 3
    assert passes.take(gone, 3.0) is None
    assert passes.take(here, 3.0) is not None
    assert passes.take(later, 3.0) is not None


def test_with_nobody_gone_the_oldest_makes_room():
    passes = Passes(60.0, 1)
    first = passes.issue(MINE, "a", "")
    second = passes.issue(MINE, "b", "")
    assert passes.take(first, 0.0) is None
    assert passes.take(second, 0.0) is not None
