"""JSON on stdout: one object at the end, or one a line while the run lasts.

`schema.json` beside this file describes both forms. Numbers are integers with their
unit in the key; rates that are not whole are floats.
"""

from __future__ import annotations

import json
from typing import Any

from pktgen_cli.stats import Counters, End, Interval, Rates, Reason, Start
from pktgen_cli.units import LAYER1_OVERHEAD

SCHEMA = 1


class JsonReport:
    """`stream`: an object a line, flushed at once, each with `event`."""

    def __init__(self, *, stream: bool) -> None:
        self.stream = stream
        self.document: dict[str, Any] = {"schema": SCHEMA, "intervals": []}
        self.facts: Start | None = None

    def start(self, start: Start) -> None:
        self.facts = start
        self.put("start", start_object(start))

    def interval(self, interval: Interval) -> None:
        assert self.facts is not None
        self.put("interval", interval_object(self.facts, interval))

    def note(self, text: str) -> None:
        """Shown by the report of the run's course."""

    def end(self, end: End) -> None:
        assert self.facts is not None
        self.put("end", end_object(self.facts, end))
        if not self.stream:
            print(json.dumps(self.document, indent=2), flush=True)

    def put(self, event: str, content: dict[str, Any]) -> None:
        if self.stream:
            print(json.dumps({"schema": SCHEMA, "event": event, **content}), flush=True)
        elif event == "interval":
            self.document["intervals"].append(content)
        else:
            self.document[event] = content


def start_object(start: Start) -> dict[str, Any]:
    return {
        "version": start.version,
        "command_line": list(start.command_line),
        "time_ns": start.time_ns,
        "kernel": start.kernel,
        "seed": start.seed,
        "backend": start.backend,
        "output": start.output,
        "link": start.link,
        "cpus": list(start.cpus),
        "qdisc_bypass": start.qdisc_bypass,
        "requested": {
            "packets": start.requested.packets,
            "duration_ns": start.requested.duration_ns,
            "pps": start.requested.pps,
            "text": start.requested.text,
        },
        "program": {"packets": start.packets, "bytes": start.packet_bytes, "sha256": start.digest},
    }


def _counts(counters: Counters, rates: Rates | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "tx_packets": counters.tx_packets,
        "tx_bytes_l2": counters.tx_bytes,
        "refused": dict(counters.refused),
    }
    if rates is not None:
        found["tx_pps"] = rates.pps
    return found


def interval_object(start: Start, interval: Interval) -> dict[str, Any]:
    rates = interval.rates()
    after, before = interval.after, interval.before
    return {
        "start_ns": max(0, before.time_ns - interval.start_ns),
        "duration_ns": interval.duration_ns,
        "tx_packets": max(0, after.tx_packets - before.tx_packets),
        "tx_bytes_l2": max(0, after.tx_bytes - before.tx_bytes),
        "tx_pps": rates.pps,
        "tx_bits_per_second_l2": rates.bits_l2,
        "tx_bits_per_second_l1": rates.bits_l1,
        "total_tx_packets": after.tx_packets,
        "workers": [
            {"worker": number, "cpu": cpu, **_counts(counters, interval.rates(row))}
            for row, (number, cpu, counters) in enumerate(zip(start.worker_numbers, start.cpus, after.workers))
        ],
    }


def end_object(start: Start, end: End) -> dict[str, Any]:
    sample, achieved = end.sample, end.achieved
    link = None
    if start.link is not None:
        counted = end.link_tx_packets
        link = {"tx_packets": counted, "matches": None if counted is None else counted == sample.tx_packets}
    return {
        "tx_packets": sample.tx_packets,
        "tx_bytes_l2": sample.tx_bytes,
        "tx_bytes_l1": sample.tx_bytes + LAYER1_OVERHEAD * sample.tx_packets,
        "duration_ns": end.duration_ns,
        "achieved_pps": achieved.pps,
        "achieved_bits_per_second_l2": achieved.bits_l2,
        "achieved_bits_per_second_l1": achieved.bits_l1,
        "refused": sample.refused,
        "abandoned_packets": sample.abandoned,
        "queued_packets": sample.queued,
        "link": link,
        "message": end.message,
        "exit_code": end.exit_code,
        "workers": [
            {
                "worker": number,
                "cpu": cpu,
                "pid": pid,
                "reason": Reason(reason).name.lower(),
                "duration_ns": max(0, counters.last_ns - end.start_ns),
                "paused_ns": counters.paused_ns,
                "abandoned_packets": counters.abandoned,
                **_counts(counters, None),
            }
            for number, cpu, pid, reason, counters in zip(
                start.worker_numbers, start.cpus, start.pids, end.reasons, sample.workers
            )
        ],
    }
