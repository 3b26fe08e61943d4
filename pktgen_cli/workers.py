"""One process a CPU: fork, pin, start together, watch, collect.

Everything is parsed and packed before the first fork, and no thread exists then.
Each worker opens its own socket after it is pinned. Workers ignore ^C, the parent's word in shared memory
stops them; they die with the parent. What a worker counted stays in shared memory however it ends.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import select
import signal
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pktgen_cli import _fastpath
from pktgen_cli.device import Link
from pktgen_cli.errors import CannotError, DeviceError, Interrupted, PktgenError, WorkerError
from pktgen_cli.packing import Packed
from pktgen_cli.program import ORDER_PACKET, Program, field_key
from pktgen_cli.schedule import Schedule, pack_worker
from pktgen_cli.stats import CounterMemory, Reason, Sample, State

START_DELAY_NS = 2_000_000
"""Between the word to start and slot 0, so that every worker is awake by then."""

LINK_BACKENDS = ("mmsg", "ring")


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPlan:
    """Everything a run needs; made once in the parent, inherited by the workers.

    `cpus` holds a CPU number for each worker, in worker order. `period` is the aggregate
    time between slots in nanoseconds, `start_ns` the time of a capture file's slot 0.
    """

    program: Program
    packed: Packed
    schedule: Schedule
    backend: str
    output: str
    link: Link | None
    cpus: tuple[int, ...]
    count: int | None
    duration_ns: int | None = None
    period: Fraction | None = None
    bypass: bool = True
    ring_slots: int = 256
    ring_slot_size: int = 0
    start_ns: int = 0
    stop_on_down: bool = False
    user: int | None = None
    group: int | None = None
    high_priority: bool = False

    @property
    def one_writer(self) -> bool:
        """A capture file has one writer that sends every slot in order (semantics section 4)."""
        return self.backend == "pcap"

    @property
    def endless(self) -> bool:
        return self.count is None and self.duration_ns is None

    @property
    def numbers(self) -> tuple[int, ...]:
        """The workers that have anything to send."""
        if self.one_writer:
            return (0,)
        return tuple(w for w in range(self.schedule.workers) if self.schedule.slots(w) != 0)


@dataclass(slots=True)
class Worker:
    """A worker process as the parent sees it; `row` is its place in the counter memory."""

    number: int
    row: int
    cpu: int
    pid: int
    alive: bool = True
    killed_by: str | None = None

    def __str__(self) -> str:
        return f"worker {self.number} (CPU {self.cpu}, pid {self.pid})"


def open_tx(plan: SendPlan) -> _fastpath.TxSocket:
    """The plan's backend, opened in the calling process. Raises OSError."""
    length = plan.program.max_length
    if plan.backend == "pcap":
        return _fastpath.TxPcap(plan.output, max_length=length, start_ns=plan.start_ns)
    if plan.backend == "null":
        return _fastpath.TxNull(max_length=length)
    assert plan.link is not None
    link, ifindex = plan.link.name, plan.link.ifindex
    if plan.backend == "ring":
        return _fastpath.TxRing(
            link, ifindex, max_length=length, bypass=plan.bypass,
            slots=plan.ring_slots, slot_size=plan.ring_slot_size,
        )  # fmt: skip
    return _fastpath.TxMmsg(link, ifindex, max_length=length, bypass=plan.bypass)


def drop_privileges(user: int | None, group: int | None) -> None:
    """Give up the group first, then the user; either may be None. Raises OSError."""
    if user is None and group is None:
        return
    with contextlib.suppress(PermissionError):
        os.setgroups([] if group is None else [group])
    if group is not None:
        os.setresgid(group, group, group)
    if user is not None:
        os.setresuid(user, user, user)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _raise_priority() -> None:
    highest = os.sched_get_priority_max(os.SCHED_FIFO)
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(highest))
    except OSError as error:
        text = f"-H: {error.strerror}: real-time priority needs the capability CAP_SYS_NICE"
        raise OSError(errno.EACCES, text) from None


class Workers:
    """The processes of one run. Use as a context: whatever happens, none is left behind."""

    def __init__(self, plan: SendPlan) -> None:
        self.plan = plan
        numbers = plan.numbers
        self.memory = CounterMemory(len(numbers))
        self.workers = [Worker(n, row, plan.cpus[n], 0) for row, n in enumerate(numbers)]
        self._errors_in, self._errors_out = os.pipe()
        self._wake_in, self._wake_out = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._wake_out, False)
        os.set_blocking(self._errors_in, False)
        self._error_text = b""

    def __enter__(self) -> Workers:
        self._old_wakeup = signal.set_wakeup_fd(self._wake_out, warn_on_full_buffer=False)
        self._old_child = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        signal.signal(signal.SIGCHLD, self._old_child)
        signal.set_wakeup_fd(self._old_wakeup)
        for descriptor in (self._errors_in, self._errors_out, self._wake_in, self._wake_out):
            os.close(descriptor)

    def start(self, caught: Sequence[int]) -> None:
        """Fork all workers and wait until each has opened its output.

        Raises the first worker's error: CannotError where privilege or kernel are missing,
        DeviceError where the link is; Interrupted when a signal number appears in `caught`
        (opening a FIFO waits for its reader).
        """
        parent = os.getpid()
        for worker in self.workers:
            worker.pid = os.fork()
            if worker.pid == 0:
                self._child(worker, parent)
        while any(self.memory.counters(w.row).state == State.STARTING for w in self.workers):
            self.wait(0.0005)
            dead = [w for w in self.workers if not w.alive]
            if caught:
                self.kill()
                raise Interrupted(caught[0])
            if dead:
                self.kill()
                raise self._worker_error(dead[0])
        drop_privileges(self.plan.user, self.plan.group)

    def go(self) -> int:
        """Start every worker at one moment; CLOCK_MONOTONIC of slot 0."""
        at = time.monotonic_ns() + (0 if self.plan.one_writer else START_DELAY_NS)
        self.memory.start(at)
        return at

    def wait(self, seconds: float) -> None:
        """Until a signal arrives, a worker ends, or the time is over; reaps what ended."""
        select.select([self._wake_in], [], [], max(0.0, seconds))
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_in, 4096)
        for worker in self.workers:
            if worker.alive and worker.pid:
                pid, status = os.waitpid(worker.pid, os.WNOHANG)
                if pid:
                    self._ended(worker, status)

    def _ended(self, worker: Worker, status: int) -> None:
        worker.alive = False
        if os.WIFSIGNALED(status):
            worker.killed_by = _signal_name(os.WTERMSIG(status))
        elif self.memory.counters(worker.row).state != State.ENDED:
            worker.killed_by = "an error"

    @property
    def running(self) -> bool:
        return any(w.alive for w in self.workers)

    def sample(self) -> Sample:
        return self.memory.sample()

    def reasons(self) -> tuple[Reason, ...]:
        return tuple(
            Reason.KILLED if w.killed_by else Reason(self.memory.counters(w.row).reason) for w in self.workers
        )

    def stop(self) -> None:
        self.memory.stop()

    def interrupt(self) -> None:
        """SIGTERM to those that still run: gets a worker out of a write that blocks."""
        for worker in self.workers:
            if worker.alive and worker.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(worker.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End every worker at once and reap it."""
        for worker in self.workers:
            if worker.alive and worker.pid:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(worker.pid, signal.SIGKILL)
        for worker in self.workers:
            if worker.alive and worker.pid:
                _, status = os.waitpid(worker.pid, 0)
                self._ended(worker, status)

    # in the child

    def _child(self, worker: Worker, parent: int) -> None:
        """Never returns."""
        try:
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            _fastpath.prepare_worker(parent)
            os.sched_setaffinity(0, {worker.cpu})
            if self.plan.high_priority:
                _raise_priority()
            plan = self.plan
            program = _fastpath.Program(
                plan.packed, random_order=plan.program.random_order,
                order_key=field_key(plan.program.seed, ORDER_PACKET, 0),
            )  # fmt: skip
            groups, turns = pack_worker(
                plan.program, plan.schedule, -1 if plan.one_writer else worker.number, plan.period
            )
            tx = open_tx(plan)
            drop_privileges(plan.user, plan.group)
            _fastpath.prepare_worker(parent)  # the kernel forgets the death signal with the user id
            _fastpath.transmit(
                program, tx, groups, turns, self.memory.memory, worker.row,
                paced=plan.period is not None, own_time=plan.one_writer,
                duration=plan.duration_ns or 0, stop_on_down=plan.stop_on_down,
            )  # fmt: skip
            tx.close()
        except OSError as error:
            self._tell({"errno": error.errno, "text": str(error.strerror), "where": str(error.filename or "")})
            os._exit(1)
        except BaseException:
            self._tell({"errno": 0, "text": traceback.format_exc(), "where": ""})
            os._exit(1)
        os._exit(0)

    def _tell(self, error: dict[str, object]) -> None:
        os.write(self._errors_out, json.dumps(error).encode() + b"\n")

    # in the parent again

    def error_text(self) -> str:
        """What a worker that failed by itself has said, empty when none did."""
        with contextlib.suppress(BlockingIOError):
            self._error_text += os.read(self._errors_in, 65536)
        return str(json.loads(self._error_text.split(b"\n")[0])["text"]) if self._error_text else ""

    def _worker_error(self, worker: Worker) -> PktgenError:
        self.error_text()
        if not self._error_text:
            return WorkerError(f"{worker} was ended by {worker.killed_by} before it could start")
        error = json.loads(self._error_text.split(b"\n")[0])
        where = f" on {error['where']}" if error["where"] else ""
        text = f"{error['text']}{where}"
        number = error["errno"]
        if number in (errno.EPERM, errno.EACCES) and self.plan.link is not None and error["where"]:
            return CannotError(
                f"{text}: packet sockets need the capability CAP_NET_RAW", "run as root, or in a namespace of your own:"
                " unshare -rn", "without privileges: -o FILE.pcap",
            )  # fmt: skip
        if number in (errno.ENODEV, errno.ENXIO):
            return DeviceError(f"{text}: the link went away")
        if self.plan.one_writer and number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            return PktgenError(text)
        if self.plan.one_writer:
            return DeviceError(text)
        if number:
            return CannotError(text)
        return WorkerError(f"{worker} failed:\n{error['text']}")

