"""Runs the programs that are compared: pktgen, trafgen and a bare sendmmsg loop.

Frames go over a veth pair between two namespaces, or into files of a temporary directory;
both are removed at the end. Every run over the link is checked against the counter of
its far end, so that a speed is never that of frames which were not sent.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from descriptions import DYNAMIC, FRAME, constant

from pktgen_cli.lab import RX_LINK, TX_LINK, Lab

PKTGEN = (sys.executable, "-m", "pktgen_cli", "send")
TRAFGEN_TIME = re.compile(r"(\d+) sec, (\d+) usec on CPU\d+ \((\d+) packets\)")
PCAP_HEADER, PCAP_RECORD = 24, 16
RUN_SECONDS = 0.7
TIMEOUT = 120.0


class SenderError(Exception):
    """A program failed, or did not send what it was asked to."""


class Senders:
    """The programs, pinned to the lowest CPU unless said otherwise. Speeds are packets per second.

    `count` is the number of packets that the bare loop sends in RUN_SECONDS on this machine.
    """

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.lab = lab
        self.directory = directory
        self.trafgen = shutil.which("trafgen", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        self.static = self.write("static.cfg", constant(FRAME))
        self.dynamic = self.write("dynamic.cfg", DYNAMIC)
        self.capture = directory / "out.pcap"
        self._bare = directory / "bare_mmsg"
        source = Path(__file__).with_name("bare_mmsg.c")
        subprocess.run(["cc", "-O2", "-o", self._bare, source], check=True)
        self.count = 100_000
        self.count = round(self.bare() * RUN_SECONDS / 10_000) * 10_000

    def write(self, name: str, text: str) -> Path:
        """A description in the temporary directory."""
        path = self.directory / name
        path.write_text(text)
        return path

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a program in the sending namespace."""
        return self.lab.popen(
            self.lab.tx, [str(a) for a in arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> str:
        """What it wrote to stdout, once it ended well."""
        output, messages = process.communicate(timeout=TIMEOUT)
        if process.returncode:
            raise SenderError(f"{process.args!r} ended with {process.returncode}:\n{output}{messages}")
        return output

    @contextlib.contextmanager
    def delivered(self, count: int) -> Iterator[None]:
        """Holds that so many frames reach the far end meanwhile."""
        before = self.lab.counters(self.lab.rx, RX_LINK)["rx_packets"]
        yield
        arrived = self.lab.counters(self.lab.rx, RX_LINK)["rx_packets"] - before
        if arrived != count:
            raise SenderError(f"{count} frames were asked for, {arrived} arrived")

    def bare(self, *, workers: int = 1) -> float:
        """The constant frame from bare loops on the lowest CPUs, `count` packets each."""
        cpus = sorted(os.sched_getaffinity(0))[:workers]
        with self.delivered(self.count * workers):
            loops = [self.start(self._bare, TX_LINK, str(c), str(self.count), FRAME.hex()) for c in cpus]
            return sum(1e9 / float(self.finish(loop)) for loop in loops)

    def pktgen(self, *arguments: str | Path) -> dict[str, Any]:
        """The `end` part of the JSON summary of one run."""
        summary = json.loads(self.finish(self.start(*PKTGEN, "--json", *arguments)))
        end: dict[str, Any] = summary["end"]
        return end

    def mmsg(self, description: Path, *, workers: int = 1) -> float:
        """pktgen through the link, `count` packets a worker."""
        count = self.count * workers
        with self.delivered(count):
            end = self.pktgen("-o", TX_LINK, "-P", str(workers), "-n", str(count), "-i", description)
        return float(end["achieved_pps"])

    def null(self, description: Path) -> float:
        """pktgen's loop alone; the count makes it last as long as the others, roughly."""
        count = self.count * 25
        end = self.pktgen("--backend", "null", "-P", "1", "-n", str(count), "-i", description)
        return float(end["achieved_pps"])

    def paced(self, pps: int, count: int) -> float:
        """The rate that pktgen achieves when asked for `pps`."""
        with self.delivered(count):
            end = self.pktgen(
                "-o", TX_LINK, "-P", "1", "-b", f"{pps}pps", "-n", str(count), "-i", self.static
            )  # fmt: skip
        return float(end["achieved_pps"])

    def trafgen_link(self, description: Path) -> float:
        """trafgen through the same link, by its own clock."""
        with self.delivered(self.count):
            output = self.finish(self._start_trafgen("-o", TX_LINK, "-n", str(self.count), "-i", description))
        found = TRAFGEN_TIME.search(output)
        if not found:
            raise SenderError(f"trafgen did not tell its time:\n{output}")
        seconds, microseconds, packets = map(int, found.groups())
        return packets / (seconds + microseconds / 1e6)

    def _start_trafgen(self, *arguments: str | Path) -> subprocess.Popen[str]:
        # It would change sysctls and IRQ affinity of the machine otherwise.
        assert self.trafgen is not None
        return self.start(self.trafgen, "--no-sock-mem", "--notouch-irq", "-P", "1", *arguments)

    def pktgen_file(self, description: Path, count: int) -> float:
        """Seconds of a whole process that writes `count` packets to a capture file."""
        began = time.perf_counter()
        self.finish(self.start(*PKTGEN, "-o", self.capture, "-P", "1", "-n", str(count), "-i", description))
        return self._wrote(count, time.perf_counter() - began)

    def trafgen_file(self, description: Path, count: int) -> float:
        """The same with trafgen."""
        began = time.perf_counter()
        self.finish(self._start_trafgen("-o", self.capture, "-n", str(count), "-i", description))
        return self._wrote(count, time.perf_counter() - began)

    def _wrote(self, count: int, seconds: float) -> float:
        """`seconds`, once the file is checked and gone. Frames are short in files of one packet only."""
        size = self.capture.stat().st_size
        self.capture.unlink()
        least = PCAP_HEADER + count * (PCAP_RECORD + len(FRAME))
        if size < least or (count > 1 and size != least):
            raise SenderError(f"{count} frames are {least} bytes of capture file, {size} were written")
        return seconds

    def worker_memory(self, description: Path) -> float:
        """Peak memory in MiB of the one worker of a run."""
        process = self.start(*PKTGEN, "--json", "-o", TX_LINK, "-P", "1", "--duration", "1s", "-i", description)
        peaks: dict[int, int] = {}
        while process.poll() is None:
            peaks |= _peak_memory_of_children(process.pid)
            time.sleep(0.02)
        pid = json.loads(self.finish(process))["end"]["workers"][0]["pid"]
        return peaks[pid] / 1024


def _peak_memory_of_children(pid: int) -> dict[int, int]:
    """VmHWM in KiB by process; those that end meanwhile are left out."""
    found: dict[int, int] = {}
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{child}/status").read_text())
            if peak:
                found[int(child)] = int(peak[1])
    return found


@contextlib.contextmanager
def opened() -> Iterator[Senders]:
    """Senders in a lab and a directory of their own. Raises CannotError without the privilege."""
    with Lab() as lab, tempfile.TemporaryDirectory(prefix="pktgen-bench-") as directory:
        yield Senders(lab, Path(directory))
