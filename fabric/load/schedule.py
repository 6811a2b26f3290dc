"""When turns are meant to begin.

Theory (coordinated omission). Who measures a call from the moment it was made, and makes the
next one only when it has returned, stops asking just while the service is slow: a stall of
ten seconds under a load of a hundred calls a second is then one slow call instead of a
thousand. So every turn has an *intended* start that does not depend on how long others
took, and its latency counts from there; how long the call itself took is kept apart as its
service time. In an open loop the intended starts are the arrivals, at a rate, whoever is
still busy. In a closed loop they are the end of the turn before and the think time: there
the user really waits, so a slow service does get fewer turns, and what is asked is what so
many users see, not what a stream of arrivals would. A closed loop with a *pace* starts every
turn at a multiple of it and is an open loop for each user.
"""

import random
from collections.abc import Iterator
from enum import StrEnum


class Arrival(StrEnum):
    """How arrivals are spaced."""

    EVEN = "even"
    POISSON = "poisson"


def arrivals(
    rate: float, length_s: float, *, ramp_s: float, spacing: Arrival, seed: int
) -> Iterator[float]:
    """Yield intended starts in seconds from the beginning, at ``rate`` a second.

    During the first ``ramp_s`` the rate grows evenly from nothing. Never beyond ``length_s``.
    """
    chance = random.Random(seed)  # noqa: S311  (repeatable on purpose)
    due = 0.0  # in expected arrivals
    while True:
        due += chance.expovariate(1.0) if spacing is Arrival.POISSON else 1.0
        at = _when(due, rate, ramp_s)
        if at >= length_s:
            return
        yield at


def _when(due: float, rate: float, ramp_s: float) -> float:
    """Invert the expected number of arrivals: rate*t²/(2*ramp), then rate*(t - ramp/2)."""
    if due <= rate * ramp_s / 2:
        return float((2 * due * ramp_s / rate) ** 0.5)
    return due / rate + ramp_s / 2


def user_start(index: int, users: int, ramp_s: float, spread_s: float) -> float:
    """Return when a user of a closed loop begins: spread over the ramp, or over a think time.

    Without either all users would ask in the same instant for ever.
    """
    over = max(ramp_s, spread_s)
    return over * index / users if users else 0.0


class Pauses:
    """A user's think times: around ``mean_s``, between half and one and a half of it."""

    def __init__(self, mean_s: float, seed: int) -> None:
        self._mean_s = mean_s
        self._chance = random.Random(seed)  # noqa: S311  (repeatable on purpose)

    def next(self) -> float:
        """Return the next one, in seconds."""
        return self._mean_s * self._chance.uniform(0.5, 1.5)


def share_out(total: int, parts: int) -> list[int]:
    """Divide a number into parts that differ by one at most."""
    whole, left = divmod(total, parts)
    return [whole + (1 if index < left else 0) for index in range(parts)]


def mixed(weights: dict[str, int], count: int) -> list[str]:
    """Give ``count`` users their scenarios by weight, evenly mixed and always the same."""
    total = sum(weights.values())
    given = dict.fromkeys(weights, 0)
    order = []
    for index in range(1, count + 1):
        # The one that is furthest behind its share comes next.
        name = max(weights, key=lambda each: weights[each] * index / total - given[each])
        given[name] += 1
        order.append(name)
    return order
