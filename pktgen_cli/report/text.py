"""Plain lines while a run lasts (stderr), and the summary at its end (stdout).

The summary keeps trafgen's `N packets outgoing` lines, because people grep for them.
"""

from __future__ import annotations

import os
import sys

from pktgen_cli.stats import Counters, End, Interval, Start
from pktgen_cli.units import NS, format_count, format_ns, format_si

PASSING = frozenset(("EAGAIN", "EINTR", "ENETDOWN", "ENOBUFS", "ENOMEM"))
"""Refusals after which a frame is tried again."""


def rate_text(pps: float, bits_l2: float, bits_l1: float) -> str:
    return f"{format_si(pps, 'pps')}, {format_si(bits_l2, 'bit/s')} L2, {format_si(bits_l1, 'bit/s')} L1"


def refused_text(refused: dict[str, int]) -> str:
    return ", ".join(f"{name} {format_count(count)}" for name, count in refused.items()) or "none"


def tell(line: str) -> None:
    """A line on stderr; when nobody reads it any more, the run goes on."""
    try:
        print(line, file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def note(text: str) -> None:
    tell(f"pktgen: {text}")


class PlainReport:
    """One line an interval, for logs."""

    def start(self, start: Start) -> None:
        cpus = ",".join(map(str, start.cpus)) or "none"
        workers = f"{len(start.cpus)} worker{'s' if len(start.cpus) != 1 else ''}"
        path = "" if start.qdisc_bypass is None else ", qdisc bypass" if start.qdisc_bypass else ", qdisc path"
        note(f"{start.backend} to {start.output}{path}, {workers} on CPU {cpus}, seed {start.seed}")

    def interval(self, interval: Interval) -> None:
        rates = interval.shown()
        line = f"{interval.elapsed_ns / NS:7.2f} s  {format_count(interval.after.tx_packets):>15} packets  "
        line += rate_text(rates.pps, rates.bits_l2, rates.bits_l1)
        refused = interval.after.refused
        line += " on average" if interval.last else ""
        line += f"  refused {refused_text(refused)}" if refused else ""
        tell(line)

    def note(self, text: str) -> None:
        note(text)

    def end(self, end: End) -> None:
        """The summary is another report's."""


class Summary:
    """The block at the end. `cpu_lines` are trafgen's lines a CPU (-C hides them)."""

    def __init__(self, *, cpu_lines: bool) -> None:
        self.cpu_lines = cpu_lines
        self.facts: Start | None = None

    def start(self, start: Start) -> None:
        self.facts = start

    def interval(self, interval: Interval) -> None:
        """Only totals matter here."""

    def note(self, text: str) -> None:
        """Shown by the report of the run's course."""

    def end(self, end: End) -> None:
        print("\n".join(self.lines(end)), flush=True)

    def lines(self, end: End) -> list[str]:
        assert self.facts is not None
        facts, sample = self.facts, end.sample
        lines = [f"{sample.tx_packets:>12} packets outgoing", f"{sample.tx_bytes:>12} bytes outgoing"]
        if self.cpu_lines:
            for cpu, worker in zip(facts.cpus, sample.workers):
                took = max(0, worker.last_ns - end.start_ns)
                seconds, micro = took // NS, took % NS // 1000
                lines.append(f"{seconds:>12} sec, {micro} usec on CPU{cpu} ({worker.tx_packets} packets)")
        achieved = end.achieved
        asked = "no limit" if facts.requested.pps is None else format_si(facts.requested.pps, "pps")
        lines.append(f"rate      asked {asked}, achieved {rate_text(achieved.pps, achieved.bits_l2, achieved.bits_l1)}")
        wanted = "" if facts.requested.packets is None else f" of {format_count(facts.requested.packets)}"
        lines.append(f"accepted  {format_count(sample.tx_packets)}{wanted} packets in {format_ns(end.duration_ns)}")
        retried = bool(sample.refused) and facts.link is not None and PASSING.issuperset(sample.refused)
        lines.append(f"refused   {refused_text(sample.refused)}{_given_up(sample.abandoned, retried)}")
        if facts.link is not None:
            lines.append(f"link      {facts.link['name']} {_link_verdict(end)}")
        lines.append(f"seed      {facts.seed}")
        if end.message:
            lines.append(f"failed    {end.message}")
        return lines


def _given_up(abandoned: int, retried: bool) -> str:
    if abandoned:
        return f" ({format_count(abandoned)} packets given up)"
    return " (each tried again)" if retried else ""


def _link_verdict(end: End) -> str:
    if end.link_tx_packets is None:
        return "counter cannot be read any more"
    difference = end.link_tx_packets - end.sample.tx_packets
    verdict = "matches" if difference == 0 else f"differs by {difference:+,}"
    return f"counted {format_count(end.link_tx_packets)} packets: {verdict}"


def worker_name(counters: Counters) -> str:
    """The worker's state in one word."""
    return ("starting", "ready", "running", "paused", "ended")[min(counters.state, 4)]
