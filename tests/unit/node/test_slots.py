"""The warm pool decides; nothing is started here."""

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from workers.slots import REFILL_DELAY_S, Destroy, Grant, Refuse, Slots, SlotState, Start


def pool(warm=2, max_starting=2, max_slots=8):
    numbers = itertools.count(1)
    return Slots(
        warm=warm,
        max_starting=max_starting,
        max_slots=max_slots,
        new_id=lambda: f"slt_{next(numbers)}",
    )


def filled(**facts):
    slots = pool(**facts)
    pending = slots.tick(0.0)
    while pending:
        pending = [more for item in pending for more in slots.ready(item.slot_id, 0.0)]
    return slots


def test_an_empty_pool_starts_its_warm_slots_but_few_at_once():
    assert pool(warm=4, max_starting=2).tick(0.0) == [Start("slt_1"), Start("slt_2")]


def test_each_slot_that_comes_up_lets_the_next_start():
    slots = pool(warm=3, max_starting=1)
    slots.tick(0.0)
    assert slots.ready("slt_1", 0.0) == [Start("slt_2")]


def test_a_full_pool_starts_nothing():
    assert filled().tick(0.0) == []


def test_an_opener_gets_the_oldest_warm_slot_at_once():
    assert filled().claim(7, 1.0) == [Grant(7, "slt_1")]


def test_the_refill_waits_until_the_open_had_the_processor_to_itself():
    slots = filled()
    slots.claim(7, 1.0)
    assert slots.tick(1.0 + REFILL_DELAY_S / 2) == []
    assert slots.refill_at == 1.0 + REFILL_DELAY_S
    assert slots.tick(1.0 + REFILL_DELAY_S) == [Start("slt_3")]


def test_openers_wait_in_line_for_whatever_slot_comes_up():
    slots = pool(warm=1, max_starting=1)
    slots.tick(0.0)
    assert slots.claim(1, 0.0) == []
    assert slots.claim(2, 0.0) == []
    assert slots.ready("slt_1", 0.1) == [Grant(1, "slt_1"), Start("slt_2")]
    assert slots.ready("slt_2", 0.1)[0] == Grant(2, "slt_2")


def test_a_slot_is_started_for_an_opener_even_without_a_pool():
    assert pool(warm=0).claim(1, 0.0) == [Start("slt_1")]


def test_what_was_started_for_an_opener_that_left_joins_the_pool():
    slots = pool(warm=0, max_starting=1)
    slots.claim(1, 0.0)
    slots.abandon(1, 0.1)
    slots.ready("slt_1", 0.2)
    assert slots.state_of("slt_1") is SlotState.WARM


def test_a_failed_start_refuses_the_opener_that_waits_longest_and_tries_for_the_next():
    slots = pool(warm=0, max_starting=1)
    slots.claim(1, 0.0)
    slots.claim(2, 0.0)
    assert slots.failed("slt_1", "no python", 0.0) == [Refuse(1, "no python"), Start("slt_2")]


def test_refilling_backs_off_twice_as_long_after_each_failure():
    slots = pool(warm=1, max_starting=1)
    slots.tick(0.0)
    assert slots.failed("slt_1", "no", 0.0) == []
    assert slots.refill_at == 0.5
    assert slots.tick(0.5) == [Start("slt_2")]
    slots.failed("slt_2", "no", 0.5)
    assert slots.refill_at == 1.5


def test_the_backoff_is_bounded_and_a_success_ends_it():
    slots = pool(warm=1, max_starting=1)
    now = 0.0
    for _ in range(40):
        (start,) = slots.tick(now)
        slots.failed(start.slot_id, "no", now)
        assert slots.refill_at - now <= 30.0
        now = slots.refill_at
    (start,) = slots.tick(now)
    slots.ready(start.slot_id, now)
    slots.gone(start.slot_id, now)
    assert slots.count(SlotState.STARTING) == 1


def test_an_opener_does_not_wait_for_the_backoff():
    slots = pool(warm=1, max_starting=1)
    slots.tick(0.0)
    slots.failed("slt_1", "no", 0.0)
    assert slots.claim(1, 0.1) == [Start("slt_2")]


def test_a_warm_slot_that_died_is_replaced():
    slots = filled()
    assert slots.gone("slt_1", 1.0) == [Start("slt_3")]


def test_held_slots_count_against_the_whole():
    slots = filled(warm=2, max_slots=2)
    slots.claim(1, 0.0)
    slots.claim(2, 0.0)
    assert slots.tick(100.0) == []
    assert slots.refill_at is None


def test_a_drained_pool_ends_its_warm_slots_and_refuses_everybody():
    slots = filled()
    slots.claim(1, 0.0)
    assert slots.drain() == [Destroy("slt_2")]
    assert isinstance(slots.claim(2, 0.0)[0], Refuse)
    assert slots.state_of("slt_1") is SlotState.HELD
    assert slots.tick(100.0) == []


def test_a_slot_that_comes_up_in_a_drained_pool_is_ended():
    slots = pool()
    slots.tick(0.0)
    slots.drain()
    assert slots.ready("slt_1", 0.0) == [Destroy("slt_1")]


def test_a_slot_nobody_knows_any_more_is_ended_when_it_comes_up():
    assert pool().ready("slt_9", 0.0) == [Destroy("slt_9")]


def test_adopted_slots_are_part_of_the_pool():
    slots = pool(warm=1)
    slots.adopt("slt_old", SlotState.WARM)
    slots.adopt("slt_live", SlotState.HELD)
    assert slots.tick(0.0) == []
    assert slots.claim(1, 0.0) == [Grant(1, "slt_old")]


class Machine(RuleBasedStateMachine):
    """Any order of events: the bounds hold, and each opener is answered at most once."""

    def __init__(self):
        super().__init__()
        self.slots = pool(warm=2, max_starting=2, max_slots=5)
        self.now = 0.0
        self.tickets = itertools.count(1)
        self.waiting = set()
        self.answered = set()
        self.starting = []
        self.held = []

    def take(self, instructions):
        for item in instructions:
            if isinstance(item, Start):
                self.starting.append(item.slot_id)
            elif isinstance(item, Grant | Refuse):
                assert item.ticket not in self.answered
                self.answered.add(item.ticket)
                self.waiting.discard(item.ticket)
                if isinstance(item, Grant):
                    self.held.append(item.slot_id)

    @rule()
    def claim(self):
        ticket = next(self.tickets)
        self.waiting.add(ticket)
        self.take(self.slots.claim(ticket, self.now))

    @precondition(lambda self: self.waiting)
    @rule()
    def abandon(self):
        self.take(self.slots.abandon(self.waiting.pop(), self.now))

    @precondition(lambda self: self.starting)
    @rule()
    def ready(self):
        self.take(self.slots.ready(self.starting.pop(0), self.now))

    @precondition(lambda self: self.starting)
    @rule()
    def failed(self):
        self.take(self.slots.failed(self.starting.pop(), "no", self.now))

    @precondition(lambda self: self.held)
    @rule()
    def close(self):
        self.take(self.slots.gone(self.held.pop(), self.now))

    @rule(seconds=st.floats(0, 60))
    def tick(self, seconds):
        self.now += seconds
        self.take(self.slots.tick(self.now))

    @invariant()
    def bounds_hold(self):
        counts = [self.slots.count(state) for state in SlotState]
        assert sum(counts) <= 5
        assert self.slots.count(SlotState.STARTING) == len(self.starting) <= 2
        assert self.slots.count(SlotState.HELD) == len(self.held)
        assert self.slots.waiting == len(self.waiting)

    @invariant()
    def nobody_waits_beside_a_warm_slot(self):
        assert not (self.slots.waiting and self.slots.count(SlotState.WARM))

    @invariant()
    def whoever_waits_is_worked_for(self):
        if self.slots.waiting:
            assert self.starting or len(self.held) == 5


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestAnyOrderOfEvents = Machine.TestCase


def test_owners_are_served_in_turn_however_many_opens_one_of_them_has():
    slots = pool(warm=0, max_starting=1, max_slots=20)
    for ticket in range(5):
        slots.claim(ticket, 0.0, "flood")
    slots.claim(9, 0.0, "other")
    granted = []
    for _ in range(4):
        slot_id = next(key for key in slots._slots if slots.state_of(key) is SlotState.STARTING)
        granted += [one.ticket for one in slots.ready(slot_id, 0.0) if isinstance(one, Grant)]
    assert granted == [0, 9, 1, 2]
