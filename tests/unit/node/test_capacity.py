from workers.capacity import UNKNOWN, parse_memory, parse_ptys


def test_the_machine_s_own_reserve_of_terminals_is_not_counted_as_free():
    assert parse_ptys(4096, 1024, 72) == 3000


def test_a_machine_below_its_reserve_has_its_plain_maximum():
    assert parse_ptys(64, 1024, 60) == 4


def test_more_used_than_there_are_is_none_left():
    assert parse_ptys(10, 0, 12) == 0


def test_available_memory_is_read_in_bytes():
    assert parse_memory("MemTotal: 10 kB\nMemAvailable:   2048 kB\n") == 2 * 1024 * 1024


def test_a_kernel_that_does_not_say_is_unknown_and_not_empty():
    assert parse_memory("MemTotal: 10 kB\n") == UNKNOWN
