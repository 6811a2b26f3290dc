"""Latencies in bounded memory.

Theory. A latency is counted in whole microseconds in a bucket whose width grows with its
value: below ``2 * HALF`` µs every value has a bucket of its own, above it each doubling is
divided into ``HALF`` buckets. So a bucket is never wider than 1/HALF of its values (0.8 %),
whatever the latency, and there are at most ``HALF * 26`` of them up to an hour. A percentile
is the upper edge of the bucket in which its rank lies: never below the true value, and above
it by less than a bucket. Adding two histograms is adding their buckets, so windows, owners
and processes can be counted apart and put together without loss.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Self

HALF_BITS = 7
HALF = 1 << HALF_BITS
LONGEST_US = 3_600_000_000


def bucket_of(micros: int) -> int:
    """Return the number of the bucket of a value; buckets are numbered in their order."""
    if micros < 2 * HALF:
        return micros
    shift = micros.bit_length() - HALF_BITS - 1
    return shift * HALF + (micros >> shift)


def edge_of(bucket: int) -> int:
    """Return the largest value that lies in a bucket, in microseconds."""
    if bucket < 2 * HALF:
        return bucket
    shift = bucket // HALF - 1
    return ((HALF + bucket % HALF + 1) << shift) - 1


class Histogram:
    """Counted latencies, given and returned in seconds."""

    __slots__ = ("_buckets", "_max", "_sum", "count")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._sum = 0
        self._max = 0
        self.count = 0

    def add(self, seconds: float) -> None:
        """Count one latency; below zero counts as zero, above an hour as an hour."""
        micros = min(max(0, round(seconds * 1e6)), LONGEST_US)
        number = bucket_of(micros)
        self._buckets[number] = self._buckets.get(number, 0) + 1
        self._sum += micros
        self._max = max(self._max, micros)
        self.count += 1

    def merge(self, other: "Histogram") -> None:
        """Add what another one has counted."""
        row = other.to_plain()
        for number, count in row["buckets"]:
            self._buckets[number] = self._buckets.get(number, 0) + count
        self._sum += row["sum_us"]
        self._max = max(self._max, row["max_us"])
        self.count += other.count

    @classmethod
    def sum_of(cls, parts: "Iterable[Histogram]") -> Self:
        """Put several together."""
        whole = cls()
        for part in parts:
            whole.merge(part)
        return whole

    def percentile(self, share: float) -> float | None:
        """Return the latency that ``share`` (0 to 1) of all did not exceed; None without any."""
        if not self.count:
            return None
        rank = max(1, -(-round(share * self.count * 1e9) // 1_000_000_000))
        seen = 0
        for number in sorted(self._buckets):
            seen += self._buckets[number]
            if seen >= rank:
                return min(edge_of(number), self._max) / 1e6
        return self._max / 1e6

    @property
    def longest(self) -> float | None:
        """The largest latency, exactly to a microsecond; None without any."""
        return self._max / 1e6 if self.count else None

    @property
    def mean(self) -> float | None:
        """The mean latency; None without any."""
        return self._sum / self.count / 1e6 if self.count else None

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "count": self.count,
            "sum_us": self._sum,
            "max_us": self._max,
            "buckets": sorted(self._buckets.items()),
        }

    @classmethod
    def from_plain(cls, row: Mapping[str, Any]) -> Self:
        """Return what ``to_plain`` was made from. Raises: KeyError, TypeError, ValueError."""
        whole = cls()
        whole._buckets = {int(number): int(count) for number, count in row["buckets"]}
        whole.count, whole._sum = int(row["count"]), int(row["sum_us"])
        whole._max = int(row["max_us"])
        if sum(whole._buckets.values()) != whole.count:
            raise ValueError("the buckets of a histogram do not add up to its count")
        return whole


def summary(histogram: Histogram) -> dict[str, float | int | None]:
    """Return the usual figures in milliseconds, for people and for marks."""
    row: dict[str, float | int | None] = {"count": histogram.count}
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)):
        row[f"{name}_ms"] = _ms(histogram.percentile(share))
    row["max_ms"] = _ms(histogram.longest)
    row["mean_ms"] = _ms(histogram.mean)
    return row


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1e3, 3)
