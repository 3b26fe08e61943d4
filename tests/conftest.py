"""Fixtures: a lab of two namespaces, a capture on its far end, and the command line.

Tests that need root build their own namespaces (names carry the pid) and remove them
even on failure; traffic stays inside. Without root they skip and say so.
"""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from pktgen_cli.lab import Lab, enter

settings.register_profile(
    "ci", max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

GOLDEN = Path(__file__).parent / "golden"
PKTGEN = [sys.executable, "-m", "pktgen_cli"]
ETH_P_ALL = 3
SO_RCVBUFFORCE = 33

TEST_FRAME = "{ fill(0xff,6), 2,0,0,0,0,1, c16(0x88b5), fill(0,46) }"
"""60 bytes of the experimental EtherType."""


def golden(name: str) -> list[dict[str, Any]]:
    """The lines of a golden .jsonl file."""
    return [json.loads(line) for line in (GOLDEN / name).read_text().splitlines()]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("root") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root for namespaces"))


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A veth pair v0 (namespace lab.tx) - v1 (lab.rx), two queues each, without addresses."""
    with Lab() as made:
        yield made


def need(program: str) -> str:
    """Path of an oracle; skips the test when it is not installed."""
    path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def terminal() -> tuple[int, int]:
    """Both ends of a pseudo-terminal; skips the test where there are none (a bare chroot)."""
    try:
        return pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal: {error}")


def pktgen(*arguments: str, stdin: bytes | None = None, timeout: float = 60) -> subprocess.CompletedProcess[bytes]:
    """Run the command line here and wait."""
    return subprocess.run(
        [*PKTGEN, *arguments], input=stdin, capture_output=True, timeout=timeout, check=False,
        **({"stdin": subprocess.DEVNULL} if stdin is None else {}),
    )


class Sender:
    """`pktgen` running inside a namespace of a lab; `finish` waits and collects its output."""

    def __init__(self, lab: Lab, *arguments: str, namespace: str | None = None) -> None:
        self.process = lab.popen(
            namespace or lab.tx, [*PKTGEN, *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        self.began = time.monotonic()

    def finish(self, timeout: float = 30) -> Sender:
        self.stdout, self.stderr = self.process.communicate(timeout=timeout)
        self.took = time.monotonic() - self.began
        return self

    @property
    def code(self) -> int:
        return self.process.returncode

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.stdout)
        return found


def send(lab: Lab, *arguments: str, timeout: float = 30) -> Sender:
    """Run `pktgen send -o v0 ...` in lab.tx to its end."""
    return Sender(lab, "send", "-o", "v0", *arguments).finish(timeout)


def socket_in(namespace: str, link: str, protocol: int = ETH_P_ALL) -> socket.socket:
    """A raw packet socket of another namespace, bound to a link there."""
    made: list[socket.socket] = []

    def make() -> None:
        enter(namespace)
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        raw.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 256 * 2**20)
        raw.bind((link, protocol))
        made.append(raw)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    return made[0]


class Capture:
    """Frames that arrive at lab.rx / v1 from now on."""

    def __init__(self, lab: Lab, namespace: str | None = None, link: str = "v1") -> None:
        self.socket = socket_in(namespace or lab.rx, link)
        self.socket.setblocking(False)

    def frames(self, count: int | None = None, quiet: float = 0.2, timeout: float = 20) -> list[bytes]:
        """Wait for `count` frames, or until none came for `quiet` seconds. Closes the socket."""
        found: list[bytes] = []
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            ready, _, _ = select.select([self.socket], [], [], quiet)
            if not ready:
                if count is None or len(found) >= count:
                    break
                continue
            try:
                while True:
                    found.append(self.socket.recv(262144))
            except BlockingIOError:
                pass
        self.socket.close()
        return found


def wait_until(condition: Any, timeout: float = 5.0) -> bool:
    """Poll a condition; whether it became true."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())
