"""One run from start to summary: starts the workers, watches them and the link, decides the end.

The outcomes and exit codes are those of semantics section 6. Whatever happens after
the start, the reports get an `End` with everything that was counted.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from types import FrameType, TracebackType

from pktgen_cli import __version__, device
from pktgen_cli.errors import EXIT_DONE, EXIT_FAILED, EXIT_SIGINT, EXIT_SIGTERM
from pktgen_cli.report import Report
from pktgen_cli.stats import End, Interval, Reason, Requested, Sample, Start, State
from pktgen_cli.workers import SendPlan, Workers

LINK_CHECK = 0.2
"""Seconds between looks at the link: it ends a run within a second of its removal."""

WRITE_PATIENCE = 0.12
"""Seconds a worker may sit in a write that blocks after a stop."""

STOP_PATIENCE = 2.0
"""Seconds a worker may take to stop before it is killed."""

SETTLE = 0.2
"""Seconds that the link's counter may lag behind after the last packet."""


class Signals:
    """Collects the signals that end a run while it lasts."""

    WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

    def __enter__(self) -> Signals:
        self.caught: list[int] = []
        self._old = {number: signal.signal(number, self._catch) for number in self.WATCHED}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        self.caught.append(number)


class Run:
    """The state of one run in the parent."""

    def __init__(self, plan: SendPlan, requested: Requested, reports: Sequence[Report], interval: float) -> None:
        self.plan = plan
        self.requested = requested
        self.reports = reports
        self.interval = interval
        self.message = ""
        self.start_ns = 0
        self.paused = False
        self.link_lost: Reason | None = None
        self.stop_asked = 0.0
        self.cut_short = False
        self.named: set[int] = set()

    def run(self) -> int:
        """Run to the end and report it; the exit code. Raises PktgenError when it cannot start."""
        with Signals() as signals, Workers(self.plan) as workers:
            workers.start(signals.caught)
            link = self.plan.link
            counter = device.tx_packets(link.name) if link else None
            self.tell_start(workers)
            nothing = workers.sample()
            self.start_ns = workers.go()
            self.watch(workers, signals, Sample(self.start_ns, nothing.workers))
            sample = workers.sample()
            reasons = self.reasons(workers)
            exit_code = self.judge(sample, reasons, signals.caught)
            sent = self.link_count(counter, sample.tx_packets)
            end = End(sample, self.start_ns, reasons, exit_code, self.message, sent)
            for report in self.reports:
                report.end(end)
        return exit_code

    def watch(self, workers: Workers, signals: Signals, last: Sample) -> None:
        """Until every worker has ended; `last` is the sample before the first packet."""
        due = time.monotonic() + self.interval
        check = time.monotonic() + LINK_CHECK
        while workers.running:
            workers.wait(max(0.0, min(due, check, time.monotonic() + 0.05) - time.monotonic()))
            now = time.monotonic()
            if len(signals.caught) > 1:
                self.cut_short = True
                workers.kill()
                break
            if signals.caught:
                self.stop(workers)
            self.look_at_workers(workers, signals)
            if now >= check:
                check = now + LINK_CHECK
                self.look_at_link(workers)
            if self.stop_asked and now > self.stop_asked + WRITE_PATIENCE:
                workers.interrupt()
            if self.stop_asked and now > self.stop_asked + STOP_PATIENCE:
                for worker in workers.workers:
                    if worker.alive:
                        self.named.add(worker.number)
                        self.say(f"{worker} did not stop within {STOP_PATIENCE:g} s and was killed")
                workers.kill()
            if now >= due and workers.running:
                due += self.interval * max(1, int((now - due) / self.interval + 1))
                last = self.tell_interval(last, workers.sample())
        self.tell_interval(last, workers.sample(), ended=True)

    def stop(self, workers: Workers) -> None:
        if not self.stop_asked:
            self.stop_asked = time.monotonic()
            workers.stop()

    def look_at_workers(self, workers: Workers, signals: Signals) -> None:
        states = [workers.memory.counters(w.row) for w in workers.workers]
        for worker, counters in zip(workers.workers, states):
            if worker.alive or worker.number in self.named or signals.caught:
                continue
            if counters.reason == Reason.STOPPED and not self.stop_asked:
                workers.wait(0.05)  # a SIGTERM to the worker; the parent's own may be on its way
                if signals.caught:
                    continue
                worker.killed_by = "SIGTERM"
            if worker.killed_by:
                self.named.add(worker.number)
                why = workers.error_text()
                self.say(f"{worker} was killed by {worker.killed_by}; the others stop" + (f"\n{why}" if why else ""))
                self.stop(workers)
            elif counters.reason in (Reason.LINK_GONE, Reason.LINK_DOWN, Reason.FAILED, Reason.STUCK):
                self.stop(workers)
        paused = any(c.state == State.PAUSED for c in states)
        going = paused or any(c.state == State.RUNNING for c in states)
        if paused != self.paused and going and not self.stop_asked and self.plan.link:
            self.paused = paused
            name = self.plan.link.name
            what = "is down or has no carrier: paused until it is back" if paused else "is back: going on"
            for report in self.reports:
                report.note(f"link {name} {what}")

    def look_at_link(self, workers: Workers) -> None:
        link = self.plan.link
        if link is None or self.stop_asked:
            return
        running = device.is_running(link.ifindex)
        if running is None:
            self.link_lost = Reason.LINK_GONE
        elif not running and self.plan.stop_on_down:
            self.link_lost = Reason.LINK_DOWN
        if self.link_lost:
            self.stop(workers)

    def reasons(self, workers: Workers) -> tuple[Reason, ...]:
        """Why each worker ended; those that the parent stopped for the link's sake ended for that."""
        found = workers.reasons()
        if self.link_lost:
            found = tuple(self.link_lost if r in (Reason.STOPPED, Reason.KILLED) else r for r in found)
        return found

    def judge(self, sample: Sample, reasons: tuple[Reason, ...], caught: list[int]) -> int:
        """The exit code; says why when it is not 0 or 130."""
        name = self.plan.link.name if self.plan.link else self.plan.output
        failures = {
            Reason.LINK_GONE: f"link {name} is gone (deleted, or moved to another namespace)",
            Reason.LINK_DOWN: f"link {name} is down or has no carrier",
            Reason.STUCK: f"{sample.queued} frames are still queued in the kernel, which does not send them",
        }
        for reason, text in failures.items():
            if reason in reasons:
                self.say(text)
                return EXIT_FAILED
        for reason, counters in zip(reasons, sample.workers):
            if reason == Reason.FAILED:
                self.say(f"{name}: {os.strerror(counters.error)}")
                return EXIT_FAILED
        if Reason.KILLED in reasons and not self.cut_short:
            return EXIT_FAILED
        if sample.abandoned:
            refused = ", ".join(f"{error} {count}" for error, count in sample.refused.items())
            self.say(f"{sample.abandoned} packets were given up: {refused}")
            return EXIT_FAILED
        if not caught or all(r in (Reason.SENT, Reason.DEADLINE) for r in reasons):
            return EXIT_DONE
        if self.plan.endless and not self.cut_short:
            return EXIT_DONE
        return EXIT_SIGINT if caught[0] == signal.SIGINT else EXIT_SIGTERM

    def say(self, text: str) -> None:
        """A failure: one line now, and in the end report."""
        self.message = self.message or text
        for report in self.reports:
            report.note(text)

    def link_count(self, before: int | None, accepted: int) -> int | None:
        """The link's own counter difference, given a moment to settle."""
        if self.plan.link is None or before is None:
            return None
        patience = time.monotonic() + SETTLE
        while True:
            after = device.tx_packets(self.plan.link.name)
            if after is None or self.link_lost == Reason.LINK_GONE:
                return None
            if after - before == accepted or time.monotonic() > patience:
                return after - before
            time.sleep(0.01)

    def tell_start(self, workers: Workers) -> None:
        plan, link = self.plan, self.plan.link
        kernel = os.uname()
        facts: dict[str, object] | None = None
        if link is not None:
            facts = {
                "name": link.name, "ifindex": link.ifindex, "mtu": link.mtu, "address": link.address,
                "driver": link.driver,
            }  # fmt: skip
        start = Start(
            version=__version__,
            command_line=tuple(sys.argv),
            time_ns=time.time_ns(),
            kernel=f"{kernel.sysname} {kernel.release} {kernel.machine}",
            seed=plan.program.seed,
            backend=plan.backend,
            output=plan.output,
            link=facts,
            cpus=tuple(w.cpu for w in workers.workers),
            pids=tuple(w.pid for w in workers.workers),
            qdisc_bypass=plan.bypass if link is not None else None,
            requested=self.requested,
            packets=len(plan.program.packets),
            packet_bytes=sum(p.max_length for p in plan.program.packets),
            digest=plan.packed.digest(),
            worker_numbers=tuple(w.number for w in workers.workers),
        )
        for report in self.reports:
            report.start(start)

    def tell_interval(self, last: Sample, sample: Sample, *, ended: bool = False) -> Sample:
        interval = Interval(self.start_ns, last, sample, ended)
        for report in self.reports:
            report.interval(interval)
        return sample
