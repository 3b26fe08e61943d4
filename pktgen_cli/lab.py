"""Two network namespaces joined by a veth pair: a place to send where nothing leaks out.

Names carry the pid of their maker. The links get no addresses, so that the kernel adds no
packets of its own and counters can be compared exactly. `close` removes everything,
also after a failure.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from pktgen_cli.errors import CannotError

CLONE_NEWNET = 0x40000000
TX_LINK, RX_LINK = "v0", "v1"
SETTLE = 2.0
"""Seconds to wait for both links to run."""
_NO_ADDRESSES = 1  # IN6_ADDR_GEN_MODE_NONE


def enter(namespace: str) -> None:
    """Move the calling process into a named namespace (setns(2)). Raises OSError."""
    descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(descriptor, CLONE_NEWNET) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)
    finally:
        os.close(descriptor)


class Lab:
    """Namespaces `tx` with link v0 and `rx` with its peer v1, both up.

    `queues` is the number of tx and rx queues of each end, `mtu` in bytes. Raises CannotError without the
    privilege to make namespaces.
    """

    _made = 0

    def __init__(self, *, queues: int = 2, mtu: int = 1500) -> None:
        Lab._made += 1
        self._owner = os.getpid()
        self.tx = f"pktgen-{os.getpid()}-{Lab._made}-tx"
        self.rx = f"pktgen-{os.getpid()}-{Lab._made}-rx"
        self._queues, self._mtu = queues, mtu
        self._children: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Lab:
        try:
            self.open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        from pyroute2 import netns

        try:
            for name in (self.tx, self.rx):
                netns.create(name)
        except PermissionError as error:
            raise CannotError(
                f"namespaces in /run/netns: {error.strerror}", "run as root", "in a user namespace: unshare -rnm"
            ) from None
        self.netlink(self.tx, self._make_links)
        self.up(self.rx, RX_LINK)
        self.up(self.tx, TX_LINK)
        end = time.monotonic() + SETTLE
        while not (self.runs(self.tx, TX_LINK) and self.runs(self.rx, RX_LINK)) and time.monotonic() < end:
            time.sleep(0.005)  # the kernel sets the operational state a moment after the carrier

    def runs(self, namespace: str, name: str) -> bool:
        """Whether the link's operational state is UP."""

        def call(ip: Any) -> bool:
            message = ip.link("get", index=ip.link_lookup(ifname=name)[0])[0]
            return bool(message.get_attr("IFLA_OPERSTATE") == "UP")

        return bool(self.netlink(namespace, call))

    def _make_links(self, ip: Any) -> None:
        shape = {"num_tx_queues": self._queues, "num_rx_queues": self._queues, "mtu": self._mtu}
        with open(f"/run/netns/{self.rx}", "rb") as other:
            peer = {"ifname": RX_LINK, "net_ns_fd": other.fileno(), **shape}
            ip.link("add", ifname=TX_LINK, kind="veth", peer=peer, **shape)

    def netlink(self, namespace: str, call: Callable[[Any], Any]) -> Any:
        """`call` with a pyroute2 IPRoute of that namespace."""
        from pyroute2 import IPRoute

        with IPRoute(netns=namespace) as ip:
            return call(ip)

    def link(self, namespace: str, name: str, action: str, **changes: Any) -> None:
        """A link command of pyroute2 on the link of that name."""

        def call(ip: Any) -> None:
            ip.link(action, index=ip.link_lookup(ifname=name)[0], **changes)

        self.netlink(namespace, call)

    def up(self, namespace: str, name: str) -> None:
        mode = {"attrs": [("AF_INET6", {"attrs": [("IFLA_INET6_ADDR_GEN_MODE", _NO_ADDRESSES)]})]}
        self.link(namespace, name, "set", IFLA_AF_SPEC=mode)
        self.link(namespace, name, "set", state="up")

    def down(self, namespace: str, name: str) -> None:
        self.link(namespace, name, "set", state="down")

    def counters(self, namespace: str, name: str) -> dict[str, int]:
        """The link's 64-bit statistics: rx_packets, tx_packets, rx_bytes ..."""

        def call(ip: Any) -> dict[str, int]:
            message = ip.link("get", index=ip.link_lookup(ifname=name)[0])[0]
            return dict(message.get_attr("IFLA_STATS64"))

        found: dict[str, int] = self.netlink(namespace, call)
        return found

    def popen(self, namespace: str, arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a command inside; it is ended with the lab."""
        child: subprocess.Popen[str] = subprocess.Popen(
            arguments, preexec_fn=lambda: enter(namespace), text=True, **options
        )
        self._children.append(child)
        return child

    def close(self) -> None:
        """End what was started, then remove both namespaces and with them the links.

        Only in the process that made the lab: pyroute2 forks, and a child of it may come by here.
        """
        if os.getpid() != self._owner:
            return
        for child in self._children:
            if child.poll() is None:
                child.kill()
            child.wait()
        from pyroute2 import netns

        for name in (self.tx, self.rx):
            with contextlib.suppress(FileNotFoundError, OSError):
                netns.remove(name)
