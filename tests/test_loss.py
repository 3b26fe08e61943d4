"""The device-loss matrix (kernel-notes S2, semantics section 6), for each backend that sends on a link.

Every end of a run is checked for totals that add up and JSON that fits the schema.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import struct
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import TEST_FRAME, Capture, Sender, socket_in, wait_until
from jsonschema import Draft202012Validator

from pktgen_cli import report
from pktgen_cli.lab import Lab

pytestmark = pytest.mark.root

backends = pytest.mark.parametrize("backend", ["mmsg", "ring"])
ends = pytest.mark.parametrize("end", ["peer", "own"])
"""Which end of the veth pair goes down: v1, so that v0 loses its carrier, or v0 itself."""

ADDRESSES = "fill(0xff,6), 2,0,0,0,0,1, c16(0x88b5)"
NUMBERED = f"{{ {ADDRESSES}, dinc(0,250), dinc(0,255), fill(0,44) }}"
"""The two counters together are different in 251 * 256 frames in a row."""
NUMBERED_TOO = f"{{ {ADDRESSES}, dinc(0,250), dinc(0,255), fill(1,44) }}"

BIG = f"{{ {ADDRESSES}, fill(1,986) }}"
"""1000 bytes: too long once the MTU is SMALL_MTU."""
SMALL_MTU = 500

PAUSED, BACK, GONE, DOWN = "paused until it is back", "v0 is back", "v0 is gone", "v0 is down or has no carrier"

@cache
def schema() -> Draft202012Validator:
    text = (Path(report.__file__).parent / "schema.json").read_text()
    return Draft202012Validator(json.loads(text))


class Run(Sender):
    """`pktgen send -o v0 --json ...` whose stderr and workers can be watched while it runs."""

    def __init__(self, lab: Lab, backend: str, *arguments: str, frame: str = TEST_FRAME) -> None:
        super().__init__(lab, "send", "-o", "v0", "--backend", backend, "--json", *arguments, frame)
        self.lab = lab
        self.seen = ""

    def tells(self, text: str, timeout: float = 3) -> bool:
        """Wait until stderr holds the text."""
        assert self.process.stderr is not None
        descriptor = self.process.stderr.fileno()
        end = time.monotonic() + timeout
        while text not in self.seen and time.monotonic() < end:
            if select.select([descriptor], [], [], 0.05)[0]:
                more = os.read(descriptor, 65536)
                if not more:
                    break
                self.seen += more.decode()
        return text in self.seen

    def sends(self, packets: int = 1) -> Run:
        """Wait until so many packets have reached v1."""
        assert wait_until(lambda: arrived(self.lab) >= packets), "the run did not get going"
        return self

    def pids(self) -> list[int]:
        """Its workers now."""
        pid = self.process.pid
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def finish(self, timeout: float = 10) -> Run:
        """Wait for its end; `took` counts from this call. Nothing may be left, and no traceback printed."""
        pids = self.pids() if self.process.poll() is None else []
        began = time.monotonic()
        super().finish(timeout)
        self.took = time.monotonic() - began
        self.stderr = self.seen + self.stderr
        assert "Traceback" not in self.stderr
        pids += [w["pid"] for w in self.json["end"]["workers"]]
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "workers are left"
        return self

    def end(self) -> dict[str, Any]:
        """The result, after a look at its form and sums."""
        document = self.json
        schema().validate(document)
        end: dict[str, Any] = document["end"]
        for key in ("tx_packets", "tx_bytes_l2", "abandoned_packets"):
            assert end[key] == sum(worker[key] for worker in end["workers"])
        assert end["exit_code"] == self.code
        return end

    def reasons(self) -> set[str]:
        return {worker["reason"] for worker in self.json["end"]["workers"]}


def arrived(lab: Lab) -> int:
    return lab.counters(lab.rx, "v1")["rx_packets"]


def down(lab: Lab, end: str) -> None:
    lab.down(*((lab.rx, "v1") if end == "peer" else (lab.tx, "v0")))


def up(lab: Lab, end: str) -> None:
    lab.up(*((lab.rx, "v1") if end == "peer" else (lab.tx, "v0")))


def remove(lab: Lab) -> None:
    lab.link(lab.tx, "v0", "del")


def move(lab: Lab) -> None:
    with open(f"/run/netns/{lab.rx}", "rb") as other:
        lab.link(lab.tx, "v0", "set", net_ns_fd=other.fileno())


def processor_time(pids: list[int]) -> float:
    """Seconds of CPU, user and system, that these processes have used."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def numbered(m: int, filling: int = 0) -> bytes:
    """Occurrence m of NUMBERED, or with filling 1 of NUMBERED_TOO."""
    counters = bytes([(m + 1) % 251, (m + 1) % 256])
    return bytes.fromhex("ffffffffffff 020000000001 88b5") + counters + bytes([filling]) * 44


def in_order(slots: list[int]) -> bool:
    """Whether each of two workers kept the order of its slots."""
    return all(mine == sorted(mine) for mine in ([s for s in slots if s % 2 == w] for w in (0, 1)))


class NewLab(Lab):
    """Does not wait until its links are told to run, and does not ask: asking would settle it."""

    def runs(self, namespace: str, name: str) -> bool:
        return True


@pytest.fixture
def new_lab() -> Iterator[Lab]:
    """A lab whose v0 works, but is without IFF_RUNNING for most of a second.

    The kernel deals with carriers once a second (net/core/link_watch.c), qdiscs included: here it has just done so.
    """
    siocgifflags, iff_running = 0x8913, 0x40
    with NewLab() as other:
        with socket_in(other.tx, "v0", 0) as query:

            def is_told() -> bool:
                answer = fcntl.ioctl(query, siocgifflags, struct.pack("16s24x", b"v0"))
                return bool(struct.unpack_from("H", answer, 16)[0] & iff_running)

            assert wait_until(is_told)
        with NewLab() as made:
            yield made


@backends
@ends
def test_pauses_while_the_link_is_down(lab: Lab, backend: str, end: str) -> None:
    count = 1200
    # A packet socket is unhooked when its own link goes down: v1 is captured only where it stays up.
    capture = Capture(lab) if end == "own" else None
    run = Run(lab, backend, "-b", "2kpps", "-n", str(count), frame=NUMBERED).sends(100)
    down(lab, end)
    assert run.tells(PAUSED), "did not pause"
    before, used = arrived(lab), processor_time(run.pids())
    time.sleep(1)
    assert len(run.pids()) == 2
    assert processor_time(run.pids()) - used < 0.3
    assert arrived(lab) == before
    up(lab, end)
    resumed = time.monotonic()
    assert wait_until(lambda: arrived(lab) > before, timeout=2)
    assert time.monotonic() - resumed < 0.5
    run.finish()
    assert run.code == 0
    assert run.reasons() == {"sent"}
    result = run.end()
    assert result["tx_packets"] == count
    assert result["abandoned_packets"] == 0
    assert all(worker["paused_ns"] > 0.8e9 for worker in result["workers"])
    assert result["link"] == {"tx_packets": count, "matches": True}
    # veth refuses what its peer does not take (NET_XMIT_DROP), and refused frames are tried again: none is lost
    assert arrived(lab) == count
    if capture is not None:
        slot_of = {numbered(slot): slot for slot in range(count)}
        slots = [slot_of[frame] for frame in capture.frames(count)]
        assert sorted(slots) == list(range(count))
        assert in_order(slots)
    assert run.stderr.count(PAUSED) == 1
    assert run.stderr.count(BACK) == 1


@backends
@pytest.mark.parametrize("pace", ["-b 0.5pps", "-b 1kpps", "", "-q"])
@pytest.mark.parametrize("lose", [remove, move])
def test_ends_when_the_link_is_gone(lab: Lab, backend: str, pace: str, lose: Any) -> None:
    run = Run(lab, backend, *pace.split()).sends()
    assert len(run.pids()) == 2
    lose(lab)
    run.finish()
    assert run.took < 1.5
    assert run.code == 1
    assert GONE in run.stderr
    result = run.end()
    assert result["tx_packets"] > 0
    assert GONE in result["message"]
    assert run.reasons() == {"link_gone"} or run.reasons() == {"link_gone", "stopped"}
    assert result["link"] == {"tx_packets": None, "matches": None}


@backends
def test_ends_when_the_link_is_gone_while_paused(lab: Lab, backend: str) -> None:
    run = Run(lab, backend, "-b", "1kpps").sends()
    lab.down(lab.tx, "v0")
    assert run.tells(PAUSED)
    remove(lab)
    run.finish()
    assert run.took < 1.5
    assert run.code == 1
    assert GONE in run.stderr
    assert run.end()["tx_packets"] > 0


@backends
@ends
@pytest.mark.parametrize("pace", ["-b 0.5pps", ""])
def test_on_down_stop(lab: Lab, backend: str, end: str, pace: str) -> None:
    run = Run(lab, backend, "--on-down", "stop", *pace.split()).sends()
    assert run.process.poll() is None
    down(lab, end)
    run.finish()
    assert run.took < 1.5
    assert run.code == 1
    assert DOWN in run.stderr
    assert PAUSED not in run.stderr
    result = run.end()
    assert result["tx_packets"] > 0
    assert DOWN in result["message"]
    assert "link_down" in run.reasons()
    assert run.reasons() <= {"link_down", "stopped"}


@backends
def test_on_down_stop_on_a_new_link(new_lab: Lab, backend: str) -> None:
    """The link works, though the kernel does not say so yet."""
    run = Run(new_lab, backend, "--on-down", "stop", "-b", "1kpps", "-n", "500").finish()
    assert run.code == 0
    assert run.end()["tx_packets"] == 500


@backends
def test_qdisc_path_does_not_see_the_peer(lab: Lab, backend: str) -> None:
    """The kernel accepts frames and loses them; only the link's own counter shows it."""
    lab.down(lab.rx, "v1")
    assert wait_until(lambda: not lab.runs(lab.tx, "v0"))
    run = Run(lab, backend, "-q", "-n", "5000").finish()
    assert run.code == 0
    assert PAUSED not in run.stderr
    result = run.end()
    assert result["tx_packets"] == 5000
    assert result["link"] == {"tx_packets": 0, "matches": False}
    assert arrived(lab) == 0


@backends
def test_qdisc_path_goes_on_when_the_peer_goes_down(new_lab: Lab, backend: str) -> None:
    """Frames are refused (ENOBUFS) until the kernel has switched the qdisc off; that is no reason to pause."""
    count = 2000
    run = Run(new_lab, backend, "-q", "-b", "2kpps", "-n", str(count)).sends(100)
    new_lab.down(new_lab.rx, "v1")
    run.finish()
    assert run.code == 0
    assert PAUSED not in run.stderr
    result = run.end()
    assert result["tx_packets"] == count
    assert result["abandoned_packets"] == 0
    assert 100 <= result["link"]["tx_packets"] < count
    assert result["link"]["matches"] is False


def test_summary_tells_of_frames_that_the_link_lost(lab: Lab) -> None:
    lab.down(lab.rx, "v1")
    assert wait_until(lambda: not lab.runs(lab.tx, "v0"))
    run = Sender(lab, "send", "-o", "v0", "-q", "-n", "1000", TEST_FRAME).finish()
    assert run.code == 0
    assert "1000 packets outgoing" in run.stdout
    assert "v0 counted 0 packets: differs by -1,000" in run.stdout


@backends
@ends
def test_interrupt_while_paused(lab: Lab, backend: str, end: str) -> None:
    run = Run(lab, backend, "-n", "1G").sends()
    down(lab, end)
    assert run.tells(PAUSED)
    run.process.send_signal(signal.SIGINT)
    run.finish()
    assert run.took < 0.5
    assert run.code == 130
    assert run.reasons() == {"stopped"}
    assert run.end()["tx_packets"] > 0


@backends
@ends
def test_duration_ends_while_paused(lab: Lab, backend: str, end: str) -> None:
    duration = 1.6 if end == "peer" else 0.6  # it takes a second at most until the kernel tells
    run = Run(lab, backend, "-b", "1kpps", "--duration", f"{duration}s").sends()
    started = time.monotonic()
    down(lab, end)
    assert run.tells(PAUSED)
    run.finish()
    assert time.monotonic() - started < duration + 0.5
    assert run.code == 0
    assert run.reasons() == {"deadline"}
    assert 0 < run.end()["tx_packets"] < 1000 * duration


@backends
@ends
def test_link_down_at_the_start(lab: Lab, backend: str, end: str) -> None:
    down(lab, end)
    run = Run(lab, backend, "-b", "2kpps", "-n", "500")
    assert run.tells(PAUSED)
    assert arrived(lab) == 0
    up(lab, end)
    run.finish()
    assert run.code == 0
    assert run.end()["tx_packets"] == 500
    assert arrived(lab) == 500
    assert run.stderr.count(PAUSED) == 1
    assert run.stderr.count(BACK) == 1


@backends
def test_mtu_lowered_while_running(lab: Lab, backend: str) -> None:
    count = 2000
    run = Run(lab, backend, "-b", "2kpps", "-n", str(count), frame=BIG).sends(1000)
    lab.link(lab.tx, "v0", "set", mtu=SMALL_MTU)
    run.finish()
    assert run.code == 1
    assert run.reasons() == {"sent"}
    result = run.end()
    assert result["tx_packets"] >= 1000
    assert result["abandoned_packets"] > 0
    assert result["tx_packets"] + result["abandoned_packets"] == count
    assert result["refused"]["EMSGSIZE"] == result["abandoned_packets"]
    assert "EMSGSIZE" in result["message"]
    assert arrived(lab) == result["tx_packets"]


@backends
def test_only_frames_that_are_too_long_are_given_up(lab: Lab, backend: str) -> None:
    """A third of every batch is refused for good; what stands behind it arrives whole and in order."""
    count = 1500
    lab.link(lab.tx, "v0", "set", mtu=SMALL_MTU)
    capture = Capture(lab)
    frames = f"{BIG} {NUMBERED} {NUMBERED_TOO}"
    run = Run(lab, backend, "--no-size-check", "-n", str(count), frame=frames).finish()
    assert run.code == 1
    assert run.reasons() == {"sent"}
    result = run.end()
    assert result["abandoned_packets"] == result["refused"]["EMSGSIZE"] == count // 3
    assert result["tx_packets"] == count - count // 3
    slot_of = {numbered(slot // 3, slot % 3 - 1): slot for slot in range(count) if slot % 3}
    slots = [slot_of[frame] for frame in capture.frames(result["tx_packets"])]
    assert sorted(slots) == sorted(slot_of.values())
    assert in_order(slots)


def test_duration_ends_on_time_after_a_pause(lab: Lab) -> None:
    """The pause moves slots beyond the duration: they are not sent, and nothing is waited for."""
    run = Run(lab, "mmsg", "-P", "1", "-t", "1s", "--duration", "3s")
    down(lab, "peer")
    assert wait_until(lambda: time.monotonic() - run.began > 2.2)
    up(lab, "peer")
    run.finish()
    assert run.code == 0
    assert 2.9 < time.monotonic() - run.began < 3.9
    assert run.end()["tx_packets"] <= 2
