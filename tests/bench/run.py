"""`make bench`: what pktgen costs, as ratios to a bare C loop and to trafgen.

A and B of a ratio are run in turn, A B A B, and each pair gives one ratio; the table has their
median. Absolute times change with the machine and the hour, ratios much less. Needs root,
for two namespaces. The exit code is 0 also for a MISSED bound: machines differ.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import descriptions
from senders import SenderError, Senders, opened

from pktgen_cli.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGINT, EXIT_SIGTERM, PktgenError

FILE_PACKETS = 2_000_000
PACE_SECONDS = 5
RATES = (10, 100, 1_000, 10_000, 100_000, 200_000)
LINE = "{:<58} {:>8} {:>8} .. {:<8} {:<12} {}"


@dataclass(frozen=True, slots=True)
class Measure:
    """One row. `take` gives its values, `repeat` of them; `bound` None: for reference only."""

    title: str
    take: Callable[[Senders, int], list[float]]
    bound: float | None
    at_least: bool = True
    unit: str = ""
    digits: int = 3
    trafgen: bool = False
    cpus: int = 1

    @property
    def required(self) -> str:
        if self.bound is None:
            return "-"
        return f"{'>=' if self.at_least else '<='} {self.bound:g}{self.unit}"

    def impossible(self, senders: Senders) -> str:
        """Why it cannot be taken here; empty when it can."""
        if self.trafgen and senders.trafgen is None:
            return "trafgen is not installed"
        if len(os.sched_getaffinity(0)) < self.cpus:
            return f"needs {self.cpus} CPUs"
        return ""

    def line(self, senders: Senders, repeat: int) -> str:
        reason = self.impossible(senders)
        if reason:
            return f"{self.title:<58} skipped: {reason}"
        values = self.take(senders, repeat)
        median = statistics.median(values)
        verdict = ""
        if self.bound is not None:
            verdict = "ok" if (median >= self.bound) == self.at_least or median == self.bound else "MISSED"
        shown = (f"{value:.{self.digits}f}" for value in (median, min(values), max(values)))
        return LINE.format(self.title, *shown, self.required, verdict).rstrip()


def paired(repeat: int, a: Callable[[], float], b: Callable[[], float]) -> list[float]:
    """`repeat` ratios a/b, measured in turn."""
    return [a() / b() for _ in range(repeat)]


def static_to_bare(senders: Senders, repeat: int) -> list[float]:
    return paired(repeat, lambda: senders.mmsg(senders.static), senders.bare)


def dynamic_to_bare(senders: Senders, repeat: int) -> list[float]:
    return paired(repeat, lambda: senders.mmsg(senders.dynamic), senders.bare)


def static_to_trafgen(senders: Senders, repeat: int) -> list[float]:
    return paired(repeat, lambda: senders.mmsg(senders.static), lambda: senders.trafgen_link(senders.static))


def dynamic_to_trafgen(senders: Senders, repeat: int) -> list[float]:
    return paired(repeat, lambda: senders.mmsg(senders.dynamic), lambda: senders.trafgen_link(senders.dynamic))


def bare_to_trafgen(senders: Senders, repeat: int) -> list[float]:
    return paired(repeat, senders.bare, lambda: senders.trafgen_link(senders.dynamic))


def loop_to_link(senders: Senders, repeat: int) -> list[float]:
    """Times, so the speeds turned round."""
    return paired(repeat, lambda: senders.mmsg(senders.dynamic), lambda: senders.null(senders.dynamic))


def capture_file(senders: Senders, repeat: int) -> list[float]:
    """Speeds of whole processes: times turned round."""
    return paired(
        repeat,
        lambda: senders.trafgen_file(senders.dynamic, FILE_PACKETS),
        lambda: senders.pktgen_file(senders.dynamic, FILE_PACKETS),
    )


def two_to_one(senders: Senders, repeat: int) -> list[float]:
    static = senders.static
    return paired(repeat, lambda: senders.mmsg(static, workers=2), lambda: senders.mmsg(static))


def bare_two_to_one(senders: Senders, repeat: int) -> list[float]:
    return paired(repeat, lambda: senders.bare(workers=2), senders.bare)


def compiling(make: Callable[[], str]) -> Callable[[Senders, int], list[float]]:
    """Whole processes that compile a large file for one packet."""

    def take(senders: Senders, repeat: int) -> list[float]:
        path = senders.write("large.cfg", make())
        return paired(repeat, lambda: senders.pktgen_file(path, 1), lambda: senders.trafgen_file(path, 1))

    return take


def memory(senders: Senders, repeat: int) -> list[float]:
    path = senders.write("large.cfg", descriptions.hex_bytes(1_000, 1_500))
    return [senders.worker_memory(path) for _ in range(repeat)]


def pacing(pps: int) -> Callable[[Senders, int], list[float]]:
    """Errors in percent of the mean rate over PACE_SECONDS."""

    def take(senders: Senders, repeat: int) -> list[float]:
        count = pps * PACE_SECONDS
        return [100 * abs(senders.paced(pps, count) / pps - 1) for _ in range(repeat)]

    return take


# Rows in brackets are the most that this machine allows to the row above them.
MEASURES = (
    Measure("mmsg static / bare sendmmsg loop", static_to_bare, 0.95),
    Measure("mmsg dynamic / bare sendmmsg loop", dynamic_to_bare, 0.90),
    Measure("mmsg static / trafgen static", static_to_trafgen, 1.10, trafgen=True),
    Measure("mmsg dynamic / trafgen dynamic", dynamic_to_trafgen, 1.5, trafgen=True),
    Measure("  (bare sendmmsg loop / trafgen dynamic)", bare_to_trafgen, None, trafgen=True),
    Measure("null time / mmsg time, a dynamic packet", loop_to_link, 0.06, at_least=False),
    Measure("pcap dynamic / trafgen to pcap, whole process", capture_file, 1.3, trafgen=True),
    Measure("mmsg static, two CPUs / one CPU", two_to_one, 1.8, cpus=2),
    Measure("  (bare sendmmsg loop, two CPUs / one CPU)", bare_two_to_one, None, cpus=2),
    Measure(
        "compile 10,000 packets, mixed elements / trafgen's time",
        compiling(descriptions.mixed), 8, at_least=False, trafgen=True,
    ),
    Measure(
        "compile 10,000 packets, hex bytes / trafgen's time",
        compiling(descriptions.hex_bytes), 8, at_least=False, trafgen=True,
    ),
    Measure(
        "compile 10,000 packets, numbers in all forms / trafgen's",
        compiling(descriptions.numbers), 8, at_least=False, trafgen=True,
    ),
    Measure(
        "peak memory of a worker, 1,000 packets of 1,500 B, MiB", memory, 64, at_least=False,
        unit=" MiB", digits=1,
    ),
)  # fmt: skip

PACING = tuple(
    Measure(f"pacing error over {PACE_SECONDS} s at {pps:,} pps, %", pacing(pps), 0.1,
            at_least=False, unit=" %", digits=4)
    for pps in RATES
)  # fmt: skip


def lines(senders: Senders, measures: tuple[Measure, ...], repeat: int) -> Iterator[str]:
    yield LINE.format("measure", "median", "min", "max", "required", "").rstrip()
    for measure in measures:
        yield measure.line(senders, repeat)


def leave_cleanly() -> None:
    """SIGTERM ends by way of the clean-up; not so in the children that pyroute2 forks, and ends by SIGTERM."""
    owner = os.getpid()

    def leave(number: int, frame: object) -> None:
        if os.getpid() != owner:
            os._exit(EXIT_SIGTERM)
        sys.exit(EXIT_SIGTERM)

    signal.signal(signal.SIGTERM, leave)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pacing", action="store_true", help="measure pacing instead; takes three minutes")
    parser.add_argument("--quick", action="store_true", help="two repetitions instead of five")
    parser.add_argument("--only", metavar="TEXT", default="", help="only rows whose title contains TEXT")
    options = parser.parse_args()
    measures = tuple(m for m in (PACING if options.pacing else MEASURES) if options.only in m.title)
    leave_cleanly()
    try:
        with opened() as senders:
            for line in lines(senders, measures, 2 if options.quick else 5):
                print(line, flush=True)
    except PktgenError as error:
        sys.stderr.write(error.render())
        return error.exit_code
    except SenderError as error:
        print(f"bench: {error}", file=sys.stderr)
        return EXIT_FAILED
    except KeyboardInterrupt:
        return EXIT_SIGINT
    return EXIT_DONE


if __name__ == "__main__":
    sys.exit(main())
