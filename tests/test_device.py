"""Facts of a link, and which frames it takes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import pytest
from conftest import wait_until

from pktgen_cli import device
from pktgen_cli.assembly import assemble
from pktgen_cli.device import ARPHRD_ETHER, ARPHRD_NONE, Link, check_sizes
from pktgen_cli.errors import DeviceError
from pktgen_cli.lab import Lab, enter
from pktgen_cli.program import Op, OpCode, Packet, Program

T = TypeVar("T")


def inside(namespace: str, call: Callable[[], T]) -> T:
    """The result of a call made by a thread that has entered the namespace."""
    found: list[T] = []

    def work() -> None:
        enter(namespace)
        found.append(call())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return found[0]


def link(kind: int = ARPHRD_ETHER, mtu: int = 1500) -> Link:
    return Link("v0", 2, mtu, kind, "", "", True)


def takes(packet: Packet, to: Link | None = None) -> bool:
    try:
        check_sizes(Program((packet,)), to or link())
    except DeviceError:
        return False
    return True


@pytest.mark.root
def test_facts_of_a_link(lab: Lab) -> None:
    found = inside(lab.tx, lambda: device.find_link("v0"))
    assert (found.name, found.mtu, found.kind, found.driver, found.running) == ("v0", 1500, 1, "veth", True)
    assert len(found.address) == 17
    assert inside(lab.tx, lambda: device.link_speed("v0")) == 10**10
    assert inside(lab.tx, lambda: device.tx_packets("lo")) == 0
    assert inside(lab.tx, lambda: device.tx_packets("nope")) is None
    assert inside(lab.tx, lambda: device.is_running(found.ifindex)) is True
    lab.down(lab.rx, "v1")
    assert wait_until(lambda: inside(lab.tx, lambda: device.is_running(found.ifindex)) is False)
    lab.link(lab.tx, "v0", "del")
    assert inside(lab.tx, lambda: device.is_running(found.ifindex)) is None


def test_unknown_link() -> None:
    with pytest.raises(DeviceError, match="no link named"):
        device.find_link("no-such-link")
    assert not device.link_exists("x" * 200)


def test_sizes_on_ethernet() -> None:
    assert not takes(Packet(bytes(13)))
    assert takes(Packet(bytes(14)))
    assert takes(Packet(bytes(1514)))
    assert not takes(Packet(bytes(1515)))
    tagged = bytes(12) + b"\x81\x00"
    assert takes(Packet(tagged + bytes(1504)))
    assert not takes(Packet(tagged + bytes(1505)))


def test_a_tag_must_be_certain() -> None:
    frame = bytes(12) + b"\x81\x00" + bytes(1504)
    for offset, fine in ((11, True), (12, False), (13, False), (14, True)):
        assert takes(Packet(frame, (Op(OpCode.COUNTER, offset, 1),))) is fine


def test_every_length_counts() -> None:
    op = Op(OpCode.COUNTER, width=0, low=10, high=60)
    assert not takes(assemble(bytes(60), [op]))
    assert takes(assemble(bytes(60), [Op(OpCode.COUNTER, width=0, low=14, high=60)]))
    assert not takes(assemble(bytes(1600), [Op(OpCode.COUNTER, width=0, low=14, high=1600)]))


def test_sizes_on_other_links() -> None:
    assert takes(Packet(bytes(1)), link(ARPHRD_NONE))
    assert not takes(Packet(b""), link(ARPHRD_NONE))
    assert takes(Packet(bytes(1500)), link(ARPHRD_NONE))
    assert not takes(Packet(bytes(1501)), link(ARPHRD_NONE))
    assert takes(Packet(bytes(9000)), link(801))  # not known: the kernel decides
