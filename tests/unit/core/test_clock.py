from fabric.core.clock import ManualClock, SystemClock


def test_manual_clock_moves_only_when_told():
    clock = ManualClock(5.0)
    assert (clock.monotonic(), clock.wall()) == (5.0, 5.0)
    clock.advance(2.5)
    assert (clock.monotonic(), clock.wall()) == (7.5, 7.5)


def test_system_clock_never_goes_back():
    clock = SystemClock()
    first, second = clock.monotonic(), clock.monotonic()
    assert second >= first
    assert clock.wall() > 1_700_000_000
