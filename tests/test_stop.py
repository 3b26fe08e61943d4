"""Signals and workers: ^C always works, totals are always printed, and no process is left behind.

Each run has a session of its own, so that its processes are found again whoever their parent is.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import PKTGEN, TEST_FRAME, Capture, terminal, wait_until
from jsonschema import Draft202012Validator

from pktgen_cli import report
from pktgen_cli.lab import Lab

FRAME_BYTES = 60
PROMPT = 0.5
"""Seconds from a signal to the end of the process; the aim is 0.2, the rest is for leaving."""

UNDER_WAY = re.compile(r" s +[1-9][0-9,]* packets ")
"""An interval line that tells of packets."""

ADDRESSES = "fill(0xff,6), 2,0,0,0,0,1, c16(0x88b5)"
NUMBERED = f"{{ {ADDRESSES}, dinc(0,250), dinc(0,255), fill(0,44) }}"
"""The two counters together are different in 251 * 256 frames in a row."""

MANY = "1000000000000"

root = pytest.mark.root
links = pytest.mark.parametrize("backend", [pytest.param("mmsg", marks=root), pytest.param("ring", marks=root)])
paces = pytest.mark.parametrize("pace", ["-b 0.1pps", "-b 1kpps", ""])
backends = pytest.mark.parametrize(
    "backend", [pytest.param("mmsg", marks=root), pytest.param("ring", marks=root), "null", "pcap"]
)


@cache
def schema() -> Draft202012Validator:
    text = (Path(report.__file__).parent / "schema.json").read_text()
    return Draft202012Validator(json.loads(text))


def session(leader: int) -> dict[int, str]:
    """Processes of a session that live, or that we have not reaped, with their state (proc(5))."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # zombies of others are not ours to reap: init's, after the parent was killed
        if int(fields[3]) == leader and (fields[0] != "Z" or int(fields[1]) == os.getpid()):
            found[int(stat.parent.name)] = fields[0]
    return found


class Run:
    """`pktgen send` under way; `finish` waits for its end and collects what it said."""

    started: list[Run]

    def __init__(self, *arguments: str, lab: Lab | None = None, frame: str = TEST_FRAME) -> None:
        command = [*PKTGEN, "send", "--interval", "20ms", *arguments, frame]
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE,
            "start_new_session": True,
        }  # fmt: skip
        self.process: subprocess.Popen[str]
        if lab is None:
            self.process = subprocess.Popen(command, text=True, **options)
        else:
            self.process = lab.popen(lab.tx, command, **options)
        self.pid = self.process.pid
        self.stderr = ""
        Run.started.append(self)

    def under_way(self) -> Run:
        """Wait until it tells of packets."""
        assert self.process.stderr is not None
        descriptor = self.process.stderr.fileno()
        end = time.monotonic() + 5
        while not UNDER_WAY.search(self.stderr) and time.monotonic() < end:
            if select.select([descriptor], [], [], 0.05)[0]:
                more = os.read(descriptor, 65536)
                if not more:
                    break
                self.stderr += more.decode()
        assert UNDER_WAY.search(self.stderr), self.stderr
        return self

    def workers(self) -> list[int]:
        text = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        return [int(pid) for pid in text.split()]

    def finish(self, number: int | None = None, timeout: float = 10) -> Run:
        """Send the signal, if any, and wait for the end, which is clean; `took` is the time from then on."""
        began = time.monotonic()
        if number is not None:
            self.process.send_signal(number)
        self.stdout, rest = self.process.communicate(timeout=timeout)
        self.took = time.monotonic() - began
        self.stderr += rest or ""
        self.code = self.process.returncode
        assert "Traceback" not in self.stderr
        assert "Exception ignored" not in self.stderr
        assert session(self.pid) == {}
        return self

    @property
    def end(self) -> dict[str, Any]:
        """The result in JSON, after a look at its form and sums."""
        document = json.loads(self.stdout)
        schema().validate(document)
        end: dict[str, Any] = document["end"]
        assert end["exit_code"] == self.code
        for key in ("tx_packets", "tx_bytes_l2", "abandoned_packets"):
            assert end[key] == sum(worker[key] for worker in end["workers"])
        return end

    @property
    def totals(self) -> tuple[int, int]:
        """Packets and bytes of the summary."""
        packets = re.findall(r"^ *(\d+) packets outgoing$", self.stdout, re.M)
        octets = re.findall(r"^ *(\d+) bytes outgoing$", self.stdout, re.M)
        assert len(packets) == len(octets) == 1
        return int(packets[0]), int(octets[0])


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """After each test no process of its runs is left, neither alive nor as a zombie of ours."""
    Run.started = []
    yield
    left = {}
    for run in Run.started:
        wait_until(lambda run=run: not session(run.pid), timeout=0.5)
        left.update(session(run.pid))
        for pid in session(run.pid):
            os.kill(pid, signal.SIGKILL)
        run.process.wait()
        for pipe in (run.process.stdout, run.process.stderr):
            if pipe is not None:
                pipe.close()
    assert left == {}


Start = Callable[..., Run]


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Start]:
    """Starts a run of a backend and waits until packets flow; its capture file is x.pcap in tmp_path."""
    output = tmp_path / "x.pcap"

    def make(backend: str, *arguments: str, frame: str = TEST_FRAME) -> Run:
        where = {"null": [], "pcap": ["-o", str(output)]}.get(backend, ["-o", "v0"])
        lab = request.getfixturevalue("lab") if backend in ("mmsg", "ring") else None
        return Run("--backend", backend, *where, *arguments, lab=lab, frame=frame).under_way()

    yield make
    output.unlink(missing_ok=True)  # it may be large


@backends
@paces
@pytest.mark.parametrize(
    ("number", "arguments", "code"),
    [
        (signal.SIGINT, ["--json"], 0),
        (signal.SIGTERM, [], 0),
        (signal.SIGINT, ["-n", MANY], 130),
        (signal.SIGTERM, ["-n", MANY, "--json"], 143),
    ],
    ids=["int-endless", "term-endless", "int-finite", "term-finite"],
)
def test_signal_ends_the_run(
    start: Start, backend: str, pace: str, number: int, arguments: list[str], code: int
) -> None:
    run = start(backend, *pace.split(), *arguments).finish(number)
    assert run.took < PROMPT
    assert run.code == code
    if "--json" in arguments:
        packets, octets = run.end["tx_packets"], run.end["tx_bytes_l2"]
        assert {worker["reason"] for worker in run.end["workers"]} == {"stopped"}
        assert run.end["message"] == ""
    else:
        packets, octets = run.totals
    assert packets > 0
    assert octets == FRAME_BYTES * packets


@pytest.mark.parametrize("backend", [pytest.param("mmsg", marks=root), "null", "pcap"])
@pytest.mark.parametrize("arguments", [[], ["-n", MANY]], ids=["endless", "finite"])
def test_hangup_prints_totals(start: Start, backend: str, arguments: list[str]) -> None:
    run = start(backend, "-b", "1kpps", *arguments).finish(signal.SIGHUP)
    assert run.took < PROMPT
    assert run.totals[0] > 0
    assert bool(run.code) == bool(arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_capture_file_is_whole(start: Start, tmp_path: Path, number: int) -> None:
    run = start("pcap", "--json", frame=NUMBERED).finish(number)
    packets = run.end["tx_packets"]
    record = 16 + FRAME_BYTES
    with open(tmp_path / "x.pcap", "rb") as file:
        assert file.read(4) == bytes.fromhex("4d3cb2a1")
        octets = file.seek(0, os.SEEK_END) - 24
        assert octets == packets * record
        assert packets > 0
        slot = 0
        file.seek(24)
        while block := file.read(record * 251 * 256):  # whole turns of both counters
            count = len(block) // record
            for at, expected in ((8, FRAME_BYTES), (12, FRAME_BYTES)):
                assert set(block[at::record]) == {expected}
                assert set(block[at + 1 :: record]) | set(block[at + 2 :: record]) == {0}
            for at, turn in ((30, 251), (31, 256)):
                wanted = bytes((slot + 1 + i) % turn for i in range(turn))
                assert block[at::record] == (wanted * (count // turn + 1))[:count]
            slot += count
    assert slot == packets


@pytest.mark.parametrize("backend", [pytest.param("mmsg", marks=root), pytest.param("ring", marks=root), "null"])
def test_two_interrupts_in_a_row(start: Start, backend: str) -> None:
    run = start(backend, "-n", MANY)
    run.process.send_signal(signal.SIGINT)
    run.finish(signal.SIGINT)
    assert run.took < PROMPT
    assert run.code == 130
    assert run.totals[0] > 0


@pytest.mark.parametrize("backend", [pytest.param("mmsg", marks=root), "null"])
def test_second_interrupt_does_not_wait_for_workers(start: Start, backend: str) -> None:
    run = start(backend, "-n", MANY, "--json")
    for worker in run.workers():
        os.kill(worker, signal.SIGSTOP)
    run.process.send_signal(signal.SIGINT)
    assert not wait_until(lambda: run.process.poll() is not None, timeout=0.3)
    run.finish(signal.SIGINT)
    assert run.took < PROMPT
    assert run.code == 130
    assert run.end["tx_packets"] > 0


def test_interrupt_does_not_wait_for_ever(start: Start) -> None:
    """A worker that does not react is killed; its counts are kept."""
    run = start("null", "-n", MANY, "--json")
    os.kill(run.workers()[0], signal.SIGSTOP)
    run.finish(signal.SIGINT)
    assert run.took < 2.5
    assert run.code != 0
    assert all(worker["tx_packets"] > 0 for worker in run.end["workers"])
    assert sorted(worker["reason"] for worker in run.end["workers"]) == ["killed", "stopped"]


@pytest.mark.parametrize("backend", [pytest.param("mmsg", marks=root), pytest.param("ring", marks=root), "null"])
@pytest.mark.parametrize("pace", ["-b 1kpps", ""])
@pytest.mark.parametrize(("number", "which"), [(signal.SIGKILL, 0), (signal.SIGTERM, 1)])
def test_killed_worker_is_named(start: Start, backend: str, pace: str, number: int, which: int) -> None:
    run = start(backend, *pace.split(), "-n", MANY, "--json")
    # one line of `under_way` may tell of one worker only
    time.sleep(0.1)
    pid = run.workers()[which]
    os.kill(pid, number)
    run.finish()
    assert run.took < 1
    assert run.code == 1
    named = re.findall(r"worker (\d+) \(CPU (\d+), pid (\d+)\) was killed by (\w+)", run.stderr)
    end = run.end
    killed = next(worker for worker in end["workers"] if worker["pid"] == pid)
    expected = tuple(map(str, (killed["worker"], killed["cpu"], pid, signal.Signals(number).name)))
    assert set(named) == {expected}
    assert str(pid) in end["message"]
    assert killed["reason"] == "killed"
    assert killed["tx_packets"] > 0
    assert [w["reason"] for w in end["workers"] if w is not killed] == ["stopped"]


def test_every_killed_worker_is_named(start: Start) -> None:
    run = start("null", "--json")
    pids = run.workers()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    run.finish()
    assert run.code == 1
    assert [worker["reason"] for worker in run.end["workers"]] == ["killed", "killed"]
    assert set(re.findall(r"pid (\d+)\) was killed by SIGKILL", run.stderr)) == set(map(str, pids))


@pytest.mark.parametrize("backend", [pytest.param("mmsg", marks=root), pytest.param("ring", marks=root), "null"])
@paces
def test_workers_die_with_the_parent(start: Start, backend: str, pace: str) -> None:
    run = start(backend, *pace.split())
    assert len(run.workers()) == 2
    run.process.kill()
    run.process.wait()
    assert wait_until(lambda: not session(run.pid), timeout=1), "workers outlive the parent"


@links
def test_stopped_worker_catches_nothing_up_and_loses_nothing(lab: Lab, start: Start, backend: str) -> None:
    count = 1000
    capture = Capture(lab)
    run = start(backend, "-b", "1kpps", "-n", str(count), "--json", frame=NUMBERED)
    worker = run.workers()[0]
    os.kill(worker, signal.SIGSTOP)
    time.sleep(1)
    os.kill(worker, signal.SIGCONT)
    run.finish()
    assert run.code == 0
    assert run.end["tx_packets"] == count
    assert {w["reason"] for w in run.end["workers"]} == {"sent"}
    frames = [frame[14:16] for frame in capture.frames(count)]
    assert sorted(frames) == sorted(bytes([(m + 1) % 251, (m + 1) % 256]) for m in range(count))


@backends
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("arguments", [[], ["-n", MANY]], ids=["endless", "finite"])
def test_signal_to_the_whole_group(start: Start, backend: str, number: int, arguments: list[str]) -> None:
    """As a terminal sends ^C, and service managers SIGTERM: the workers get it too."""
    run = start(backend, "--json", *arguments)
    os.killpg(run.pid, number)
    run.finish()
    assert run.took < PROMPT
    assert run.code == (128 + number if arguments else 0)
    assert "killed" not in run.stderr
    assert run.end["tx_packets"] > 0
    assert {worker["reason"] for worker in run.end["workers"]} == {"stopped"}


def test_stream_into_head(start: Start) -> None:
    run = start("null", "--json-stream")
    with subprocess.Popen(["head", "-1"], stdin=run.process.stdout, stdout=subprocess.PIPE) as head:
        assert run.process.stdout is not None
        run.process.stdout.close()
        run.process.stdout = None
        first, _ = head.communicate(timeout=5)
    run.finish()
    assert run.took < 1
    line = json.loads(first)
    schema().validate(line)
    assert line["event"] == "start"
    assert "Broken" not in run.stderr


@pytest.mark.parametrize("arguments", [["--json"], []], ids=["json", "text"])
def test_reader_of_the_result_is_gone(start: Start, arguments: list[str]) -> None:
    run = start("null", *arguments)
    assert run.process.stdout is not None
    run.process.stdout.close()
    run.process.stdout = None
    run.finish(signal.SIGINT)
    assert run.took < PROMPT
    assert "Broken" not in run.stderr


def test_reader_of_the_messages_is_gone(start: Start) -> None:
    """What is shown while a run lasts is for nobody then; the run and its result are not touched."""
    run = start("null", "--json", "--duration", "400ms")
    assert run.process.stderr is not None
    run.process.stderr.close()
    run.process.stderr = None
    run.finish()
    assert run.code == 0
    assert {worker["reason"] for worker in run.end["workers"]} == {"deadline"}


@pytest.mark.parametrize("arguments", [["--json"], ["--json-stream"], []], ids=["json", "stream", "text"])
def test_result_cannot_be_written(arguments: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        command = [*PKTGEN, "send", "--backend", "null", "-n", "10", *arguments, TEST_FRAME]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=10, check=False)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_intervals_add_up(start: Start) -> None:
    """What was sent before the parent got to look counts too; eight workers on each CPU keep it from looking."""
    for _ in range(4):
        run = Run("--backend", "null", "--json", "-P", "16", "--duration", "50ms").finish()
        assert run.code == 0
        intervals = json.loads(run.stdout)["intervals"]
        assert sum(interval["tx_packets"] for interval in intervals) == run.end["tx_packets"]
        assert intervals[-1]["total_tx_packets"] == run.end["tx_packets"]


def test_a_terminal_that_goes_away_does_not_take_the_totals(tmp_path: Path) -> None:
    """The terminal closes (SIGHUP) while the result goes into a file."""
    main, side = terminal()
    out = tmp_path / "out"
    with out.open("wb") as result:
        child = subprocess.Popen(
            [*PKTGEN, "send", "--backend", "null", "-b", "1kpps", "{ 1 }"], stdin=side, stdout=result, stderr=side,
            start_new_session=True, env={**os.environ, "TERM": "xterm"},
        )  # fmt: skip
    os.close(side)
    assert wait_until(lambda: b"CPU" in os.read(main, 65536))
    os.close(main)
    child.send_signal(signal.SIGHUP)
    assert child.wait(timeout=5) == 0
    assert "packets outgoing" in out.read_text()


def test_opening_can_be_interrupted(tmp_path: Path) -> None:
    """A FIFO without a reader: the worker waits in open(2)."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        command = [*PKTGEN, "send", "-o", f"pcap:{fifo}", "-n", "5", TEST_FRAME]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert wait_until(lambda pid=child.pid: Path(f"/proc/{pid}/task/{pid}/children").read_text().strip() != "")
        time.sleep(0.1)
        child.send_signal(number)
        _, errors = child.communicate(timeout=3)
        assert child.returncode == code
        assert b"interrupted before the start" in errors


def test_a_reader_that_does_not_read_does_not_hold_up_an_interrupt(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    command = [*PKTGEN, "send", "-o", f"pcap:{fifo}", "-n", "1G", TEST_FRAME]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert wait_until(lambda: bool(select.select([reader], [], [], 0)[0]))
    time.sleep(0.3)
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=5)
    os.close(reader)
    assert time.monotonic() - began < 1
    assert child.returncode == 130
    assert b"packets outgoing" in out


def test_two_sigterms(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [*PKTGEN, "send", "--backend", "null", "-n", MANY, "-b", "100pps", TEST_FRAME],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    child.stderr.readline()
    child.send_signal(signal.SIGTERM)
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=5)
    assert child.returncode == 143
    assert b"packets outgoing" in out


def test_a_worker_killed_by_a_real_time_signal_is_named() -> None:
    child = subprocess.Popen(
        [*PKTGEN, "send", "--backend", "null", "-b", "1kpps", "--json", TEST_FRAME],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stderr is not None
    child.stderr.readline()
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    os.kill(int(children[0]), 35)
    out, errors = child.communicate(timeout=5)
    assert child.returncode == 1
    assert "was killed by" in errors
    assert json.loads(out)["end"]["exit_code"] == 1


@pytest.mark.root
def test_demo_removes_its_namespaces_on_sigterm() -> None:
    child = subprocess.Popen([*PKTGEN, "demo"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    assert "namespace" in child.stderr.readline()
    assert wait_until(lambda: any(f"-{child.pid}-" in name for name in os.listdir("/run/netns")))
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=10)
    assert child.returncode == 143
    assert not any(f"-{child.pid}-" in name for name in os.listdir("/run/netns"))
