"""Counters of a run: the shared memory that workers write, and what is computed from it.

Each worker owns one block of 64-bit words (fastpath/counters.pxi has the same layout; a
test holds them equal); the parent only reads. The block before them is the parent's
word to the workers. Rates are never computed from a negative or zero time.
"""

from __future__ import annotations

import errno
import mmap
import time
from dataclasses import dataclass
from enum import IntEnum

from pktgen_cli.units import LAYER1_OVERHEAD, NS

COUNTERS_WORDS = 160
ERRNO_MAX = 136
REFUSED_AT = 24

_FIELDS = (
    "tx_packets", "tx_bytes", "abandoned", "state", "first_ns", "last_ns", "paused_ns", "pauses", "reason",
    "error", "queued",
)  # fmt: skip
_START, _STOP = 0, 1


class State(IntEnum):
    """What a worker is doing."""

    STARTING = 0
    READY = 1
    RUNNING = 2
    PAUSED = 3
    ENDED = 4


class Reason(IntEnum):
    """Why a worker ended; KILLED is set by the parent."""

    RUNNING = 0
    SENT = 1
    DEADLINE = 2
    STOPPED = 3
    LINK_GONE = 4
    LINK_DOWN = 5
    FAILED = 6
    STUCK = 7
    KILLED = 8


def errno_name(number: int) -> str:
    return errno.errorcode.get(number, f"E{number}")


@dataclass(frozen=True, slots=True)
class Counters:
    """One worker's block at one moment. `refused` counts refusals by errno name; most are tried again."""

    tx_packets: int = 0
    tx_bytes: int = 0
    abandoned: int = 0
    state: int = 0
    first_ns: int = 0
    last_ns: int = 0
    paused_ns: int = 0
    pauses: int = 0
    reason: int = 0
    error: int = 0
    queued: int = 0
    refused: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """All workers at `time_ns` (CLOCK_MONOTONIC)."""

    time_ns: int
    workers: tuple[Counters, ...]

    @property
    def tx_packets(self) -> int:
        return sum(w.tx_packets for w in self.workers)

    @property
    def tx_bytes(self) -> int:
        return sum(w.tx_bytes for w in self.workers)

    @property
    def abandoned(self) -> int:
        return sum(w.abandoned for w in self.workers)

    @property
    def queued(self) -> int:
        return sum(w.queued for w in self.workers)

    @property
    def refused(self) -> dict[str, int]:
        total: dict[str, int] = {}
        for worker in self.workers:
            for name, count in worker.refused:
                total[name] = total.get(name, 0) + count
        return total

    @property
    def first_ns(self) -> int:
        return min((w.first_ns for w in self.workers if w.first_ns), default=0)

    @property
    def last_ns(self) -> int:
        return max(w.last_ns for w in self.workers) if self.workers else 0


class CounterMemory:
    """The shared memory of a run, made before the workers are forked."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.memory = mmap.mmap(-1, (workers + 1) * COUNTERS_WORDS * 8)
        self._words = memoryview(self.memory).cast("Q")

    def start(self, at_ns: int) -> None:
        """Let the workers go: slot 0 is due at that CLOCK_MONOTONIC time."""
        self._words[_START] = at_ns

    def stop(self) -> None:
        self._words[_STOP] = 1

    def counters(self, worker: int) -> Counters:
        first = (worker + 1) * COUNTERS_WORDS
        block = self._words[first : first + COUNTERS_WORDS].tolist()
        refused = tuple((errno_name(number), count) for number, count in enumerate(block[REFUSED_AT:]) if count)
        return Counters(**dict(zip(_FIELDS, block)), refused=refused)

    def sample(self) -> Sample:
        return Sample(time.monotonic_ns(), tuple(self.counters(w) for w in range(self.workers)))


@dataclass(frozen=True, slots=True)
class Rates:
    """What happened between two samples, a second."""

    pps: float
    bits_l2: float
    bits_l1: float


def rates(packets: int, octets: int, duration_ns: int) -> Rates:
    """Rates of so many packets and bytes in that time; 0 where no time passed or a counter went back."""
    if duration_ns <= 0 or packets <= 0:
        return Rates(0.0, 0.0, 0.0)
    second = NS / duration_ns
    return Rates(
        packets * second, octets * 8 * second, (octets + packets * LAYER1_OVERHEAD) * 8 * second
    )


def mean_rates(found: Sample | Counters, elapsed_ns: int) -> Rates:
    """Means of a whole run: of the intervals between its packets, so that 3 packets in 2 s of pace are 1 pps.

    Where there is no interval, the packets of the time that has passed.
    """
    packets, span = found.tx_packets, found.last_ns - found.first_ns
    if packets > 1 and span > 0:
        return rates(packets - 1, round(found.tx_bytes * (packets - 1) / packets), span)
    return rates(packets, found.tx_bytes, elapsed_ns)


@dataclass(frozen=True, slots=True)
class Interval:
    """Two samples and what happened between; times count from the start of the run.

    The `last` interval of a run ends with it and may be very short, so people are shown the means of
    the whole run there (`shown`); programs get the interval's own rates.
    """

    start_ns: int
    before: Sample
    after: Sample
    last: bool = False

    @property
    def duration_ns(self) -> int:
        return max(0, self.after.time_ns - self.before.time_ns)

    @property
    def elapsed_ns(self) -> int:
        return max(0, self.after.time_ns - self.start_ns)

    def rates(self, row: int | None = None) -> Rates:
        """Of one worker, or of all."""
        before, after = self._pair(row)
        return rates(after.tx_packets - before.tx_packets, after.tx_bytes - before.tx_bytes, self.duration_ns)

    def shown(self, row: int | None = None) -> Rates:
        if self.last:
            return mean_rates(self._pair(row)[1], self.elapsed_ns)
        return self.rates(row)

    def _pair(self, row: int | None) -> tuple[Sample | Counters, Sample | Counters]:
        if row is None:
            return self.before, self.after
        return self.before.workers[row], self.after.workers[row]


@dataclass(frozen=True, slots=True)
class Requested:
    """What the user asked for; None where nothing was."""

    packets: int | None
    duration_ns: int | None
    period_ns: float | None
    text: str

    @property
    def pps(self) -> float | None:
        return None if self.period_ns is None else NS / self.period_ns


@dataclass(frozen=True, slots=True)
class Start:
    """Facts of a run, known before the first packet."""

    version: str
    command_line: tuple[str, ...]
    time_ns: int
    kernel: str
    seed: int
    backend: str
    output: str
    link: dict[str, object] | None
    cpus: tuple[int, ...]
    pids: tuple[int, ...]
    qdisc_bypass: bool | None
    requested: Requested
    packets: int
    packet_bytes: int
    digest: str
    worker_numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class End:
    """The result of a run. `link_tx_packets` is the link's own counter difference, None where there is none."""

    sample: Sample
    start_ns: int
    reasons: tuple[Reason, ...]
    exit_code: int
    message: str
    link_tx_packets: int | None

    @property
    def duration_ns(self) -> int:
        """From the start to the last packet that was accepted."""
        return max(0, self.sample.last_ns - self.start_ns)

    @property
    def achieved(self) -> Rates:
        return mean_rates(self.sample, self.sample.time_ns - self.start_ns)
