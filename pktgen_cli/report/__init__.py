"""Reports turn samples into output; one file a format.

stdout is the result, stderr the rest: a report that is a result (summary, JSON) writes
to stdout, lines and tables that live while a run lasts to stderr.
"""

from __future__ import annotations

from typing import Protocol

from pktgen_cli.stats import End, Interval, Start


class Report(Protocol):
    """What a run tells. `start` comes first, `end` always comes last."""

    def start(self, start: Start) -> None:
        """Facts known before the first packet."""

    def interval(self, interval: Interval) -> None:
        """What happened since the interval before; the last one may be short."""

    def note(self, text: str) -> None:
        """Something the user should know now: a pause, a dead worker."""

    def end(self, end: End) -> None:
        """The result."""
