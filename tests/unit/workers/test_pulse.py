"""A broadcast that late waiters miss and early ones never."""

import asyncio

from workers.pulse import Pulse


async def test_a_pulse_right_after_asking_counts():
    pulse = Pulse()
    coming = pulse.next()
    pulse.send()
    await asyncio.wait_for(coming, 1)
    assert len(pulse) == 0


async def test_a_waiter_that_gives_up_is_forgotten():
    pulse = Pulse()
    coming = pulse.next()
    coming.cancel()
    await asyncio.gather(coming, return_exceptions=True)
    assert len(pulse) == 0
    assert not await pulse.wait(timeout_s=0.001)
    assert len(pulse) == 0


async def test_everybody_who_waits_is_woken_once():
    pulse = Pulse()
    both = [pulse.next(), pulse.next()]
    pulse.send()
    await asyncio.gather(*both)
    late = pulse.next()
    assert not late.done()
    late.cancel()
