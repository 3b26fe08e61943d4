"""The table on a terminal: a row a CPU and a sum, four times a second."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.table import Table

from pktgen_cli.report.text import PlainReport, refused_text, worker_name
from pktgen_cli.stats import End, Interval, Rates, Start
from pktgen_cli.units import NS, format_count, format_si

REFRESH = 0.25
"""Seconds between two tables."""


FRAME_LINES = 9
"""Lines of a table that are not a CPU's: title, heading, rules, sum, and the prompt."""


class LiveReport:
    """Draws on stderr with rich; the last table stays on the screen."""

    def __init__(self) -> None:
        self.console = Console(file=sys.stderr)
        self.live = Live(
            console=self.console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
        )
        self.facts: Start | None = None
        self.gone = False

    def start(self, start: Start) -> None:
        self.facts = start
        PlainReport().start(start)
        self.draw(self.live.start)

    def interval(self, interval: Interval) -> None:
        table = self.table(interval)
        self.draw(lambda: self.live.update(table, refresh=True))

    def note(self, text: str) -> None:
        self.draw(lambda: self.console.print(f"pktgen: {text}", markup=False, highlight=False))

    def end(self, end: End) -> None:
        self.draw(self.live.stop)

    def draw(self, call: Callable[[], None]) -> None:
        """Run what writes to the terminal; when that is gone, the run goes on to its totals."""
        if not self.gone:
            try:
                call()
            except OSError:
                self.gone = True

    def table(self, interval: Interval) -> Table:
        assert self.facts is not None
        mean = ", on average" if interval.last else ""
        title = f"{self.facts.output}  {interval.elapsed_ns / NS:.1f} s{mean}"
        table = Table(title=title, title_justify="left")
        for heading in ("CPU", "packets", "rate", "layer 2", "layer 1", "refused"):
            table.add_column(heading, justify="right" if heading != "refused" else "left", no_wrap=True)
        rows = list(enumerate(zip(self.facts.cpus, interval.after.workers)))
        fits = max(1, self.console.height - FRAME_LINES)  # rich would cut the sum off otherwise
        for row, (cpu, worker) in rows[: fits if len(rows) > fits else None]:
            state = worker_name(worker)
            label = str(cpu) if state in ("running", "ended", "ready") else f"{cpu} {state}"
            table.add_row(label, *_cells(worker.tx_packets, interval.shown(row), dict(worker.refused)))
        if len(rows) > fits:
            table.add_row(f"{len(rows) - fits} more")
        table.add_section()
        table.add_row("all", *_cells(interval.after.tx_packets, interval.shown(), interval.after.refused))
        return table


def _cells(packets: int, rates: Rates, refused: dict[str, int]) -> tuple[str, ...]:
    return (
        format_count(packets),
        format_si(rates.pps, "pps"),
        format_si(rates.bits_l2, "bit/s"),
        format_si(rates.bits_l1, "bit/s"),
        refused_text(refused) if refused else "",
    )
