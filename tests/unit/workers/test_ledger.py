"""The ledger of request ids survives its writer."""

from workers.ledger import ENTRY, Ledger


def ledger(entries=4, memory=None):
    return Ledger(memoryview(memory if memory is not None else bytearray(entries * ENTRY.size)))


def test_a_successor_knows_what_ran_and_what_settled():
    memory = bytearray(4 * ENTRY.size)
    first = ledger(memory=memory)
    first.record("a", b"A" * 16, 10)
    first.record("b", b"B" * 16, 20)
    first.settle("a")
    successor = ledger(memory=memory)
    assert successor.find("a").settled
    assert successor.find("a").first_offset == 10
    assert not successor.find("b").settled
    assert successor.find("b").content == b"B" * 16
    assert successor.unsettled() == 1
    assert successor.find("c") is None


def test_the_oldest_entry_makes_room_also_for_a_successor():
    memory = bytearray(3 * ENTRY.size)
    first = ledger(memory=memory)
    for number in range(4):
        first.record(str(number), bytes(16), number)
    assert first.find("0") is None
    successor = ledger(memory=memory)
    successor.record("4", bytes(16), 4)
    assert [successor.find(str(n)) is not None for n in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_an_entry_cut_short_is_unused():
    memory = bytearray(2 * ENTRY.size)
    first = ledger(memory=memory)
    first.record("a", b"A" * 16, 10)
    memory[0:16] = bytes(16)
    assert ledger(memory=memory).find("a") is None


def test_settling_an_unknown_id_changes_nothing():
    held = ledger()
    held.settle("nobody")
    assert held.unsettled() == 0
