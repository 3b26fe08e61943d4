"""Facts of a link, read in the namespace of the calling process, without privileges.

By ioctl and /proc/thread-self/net, which follow the namespace of the calling thread even where /sys still shows
another one, and cost a millisecond where a netlink library costs a fifth of a second
to import. Names are looked up when they are asked for: never cached, never guessed.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from dataclasses import dataclass

from pktgen_cli.diagnostics import nearest
from pktgen_cli.errors import DeviceError
from pktgen_cli.program import Packet, Program

_SIOCGIFFLAGS, _SIOCGIFMTU, _SIOCGIFHWADDR, _SIOCETHTOOL = 0x8913, 0x8921, 0x8927, 0x8946
_ETHTOOL_GSET, _ETHTOOL_GDRVINFO, _ETHTOOL_GLINK = 0x1, 0x3, 0xA
_IFF_RUNNING = 0x40

ARPHRD_ETHER, ARPHRD_LOOPBACK, ARPHRD_NONE = 1, 772, 0xFFFE
ETH_HLEN = 14
ETH_P_8021Q = b"\x81\x00"


@dataclass(frozen=True, slots=True)
class Link:
    """A network interface. `kind` is its ARPHRD number, `address` its MAC as text, `mtu` in bytes."""

    name: str
    ifindex: int
    mtu: int
    kind: int
    address: str
    driver: str
    running: bool

    @property
    def header(self) -> int | None:
        """Bytes before the network header, None where that is not known."""
        return {ARPHRD_ETHER: ETH_HLEN, ARPHRD_LOOPBACK: ETH_HLEN, ARPHRD_NONE: 0}.get(self.kind)


def link_exists(name: str) -> bool:
    try:
        socket.if_nametoindex(name)
    except (OSError, ValueError):
        return False
    return True


def find_link(name: str) -> Link:
    """The link of that name here. Raises DeviceError with the nearest name when there is none."""
    try:
        ifindex = socket.if_nametoindex(name)
        name = socket.if_indextoname(ifindex)  # it may have been found by another name of its
    except (OSError, ValueError):
        names = [other for _, other in socket.if_nameindex()]
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else f"links here: {', '.join(names) or 'none'}"
        raise DeviceError(f"no link named {name!r}", hint, "a capture file is named with .pcap") from None
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:

        def ask(request: int) -> bytes:
            return fcntl.ioctl(query, request, struct.pack("16s24x", name.encode()))[16:]

        try:
            mtu = struct.unpack_from("i", ask(_SIOCGIFMTU))[0]
            hardware = ask(_SIOCGIFHWADDR)
            flags = struct.unpack_from("H", ask(_SIOCGIFFLAGS))[0]
        except OSError as error:
            raise DeviceError(f"link {name!r}: {error.strerror}") from None
        driver = _driver(query, name)
    kind = struct.unpack_from("H", hardware)[0]
    address = hardware[2:8].hex(":")
    return Link(name, ifindex, mtu, kind, address, driver, bool(flags & _IFF_RUNNING))


def _ethtool(query: socket.socket, name: str, command: int, size: int) -> bytes | None:
    """The answer to an ethtool command (linux/ethtool.h), None where the driver has none."""
    answer = array.array("B", struct.pack("I", command) + bytes(size - 4))
    try:
        fcntl.ioctl(query, _SIOCETHTOOL, struct.pack("16sP16x", name.encode(), answer.buffer_info()[0]))
    except OSError:
        return None
    return answer.tobytes()


def _driver(query: socket.socket, name: str) -> str:
    answer = _ethtool(query, name, _ETHTOOL_GDRVINFO, 196)
    return answer[4:36].split(b"\0")[0].decode("ascii", "replace") if answer else ""


def link_speed(name: str) -> int | None:
    """Bits a second that the driver reports, None where it does not."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
        answer = _ethtool(query, name, _ETHTOOL_GSET, 44)
    if answer is None:
        return None
    low, high = struct.unpack_from("H", answer, 12)[0], struct.unpack_from("H", answer, 28)[0]
    speed = low | high << 16
    return None if speed in (0, 0xFFFFFFFF) or speed & 0xFFFF == 0xFFFF else int(speed) * 10**6


def is_running(ifindex: int) -> bool | None:
    """Whether the link with that number is up with carrier; None when it is gone from this namespace.

    The flag follows the carrier with up to a second's delay (net/core/link_watch.c); asking ethtool for
    the carrier brings it up to date.
    """
    try:
        name = socket.if_indextoname(ifindex)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as query:
            _ethtool(query, name, _ETHTOOL_GLINK, 8)
            answer = fcntl.ioctl(query, _SIOCGIFFLAGS, struct.pack("16s24x", name.encode()))
    except OSError:
        return None
    return bool(struct.unpack_from("H", answer, 16)[0] & _IFF_RUNNING)


def tx_packets(name: str) -> int | None:
    """The link's own counter of transmitted packets, None where it cannot be read."""
    try:
        # bytes, because without privileges a codec may be out of reach
        with open("/proc/thread-self/net/dev", "rb") as lines:
            header = next(line for line in lines if b"|" in line and b"packets" in line)
            _, receive, transmit = header.split(b"|")
            column = len(receive.split()) + transmit.split().index(b"packets")
            for line in lines:
                link, _, numbers = line.partition(b":")
                if link.strip() == name.encode():
                    return int(numbers.split()[column])
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    return None


def check_sizes(program: Program, link: Link) -> None:
    """Raise DeviceError unless the link takes every length that the Program can make.

    Limits are those of net/packet/af_packet.c: a whole link header at least; MTU + header at
    most, 4 more on Ethernet only where bytes 12 and 13 are 8100 for certain.
    """
    if link.header is None:
        return
    for number, packet in enumerate(program.packets):
        if packet.min_length < max(link.header, 1):
            raise DeviceError(
                f"packet {number} is {packet.min_length} bytes; {link.name} takes no frame shorter than "
                f"{max(link.header, 1)}",
                "files and show take any length",
            )
        limit = link.mtu + link.header + (4 if link.header and _is_tagged(packet) else 0)
        if packet.max_length > limit:
            raise DeviceError(
                f"packet {number} is {packet.max_length} bytes; {link.name} with MTU {link.mtu} takes at most {limit}",
                f"ip link set {link.name} mtu {packet.max_length - link.header}",
            )


def _is_tagged(packet: Packet) -> bool:
    if packet.template[12:14] != ETH_P_8021Q:
        return False
    writes = [(op.offset, op.width) for op in packet.ops if op.width]
    writes += [(c.offset, 2) for c in packet.live_checksums]
    return all(at < 0 or at >= 14 or at + width <= 12 for at, width in writes)
