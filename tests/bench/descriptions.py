"""What the benchmarks send: one frame, constant and changing, and large descriptions to compile.

The constant frame is one of those that the changing description makes, so that the
kernel's part of the work, the receiver's half of a veth pair included, is the same for both.
"""

from __future__ import annotations

import random
from collections.abc import Callable

DYNAMIC = """\
{
  fill(0xff,6), 2,0,0,0,0,1, c16(0x0800),
  0x45, 0, c16(46), drnd(2), 0x40, 0, 64, 17, csumip(14,33), 10,0,0,dinc(1,250), 10,0,0,2,
  drnd(2), drnd(2), c16(26), csumudp(14,34), fill(0x41,18)
}
"""
"""Ethernet, IPv4, UDP and 18 bytes: 60 bytes with a counter, three random fields and two checksums."""

FRAME = bytes.fromhex(
    "ffffffffffff 020000000001 0800"
    "4500002e 31a04000 4011f51b 0a000002 0a000002"
    "1e2a1af9 001a6748"
) + b"A" * 18  # fmt: skip

PACKETS = 10_000
ELEMENTS = 60

_FUNCTIONS = (
    "fill(0xff,6)", "c16(0x0800)", "dinc(1,250)", "drnd(2)", "csumip(14,33)", "seqinc(0x20,8)",
    "rnd(4)", "c32(0x0a000001)", "ddec(0,99)", "drnd()", "seqdec(200,4,2)", "const8(64)",
)  # fmt: skip


def constant(frame: bytes) -> str:
    """The description of one constant frame."""
    return "{ " + ", ".join(f"0x{octet:02x}" for octet in frame) + " }\n"


def _plain(draw: random.Random) -> str:
    """A number as people write them: mostly hexadecimal or decimal, now and then in another form."""
    value = draw.randrange(256)
    (form,) = draw.choices(("hex", "decimal", "octal", "binary", "character"), (10, 7, 1, 1, 1))
    if form == "hex":
        return f"0x{value:02x}"
    if form == "octal":
        return f"0{value:o}"
    if form == "binary":
        return f"0b{value:08b}"
    if form == "character":
        return f"'{chr(ord('a') + value % 26)}'"
    return str(value)


def _packets(count: int, elements: Callable[[random.Random], list[str]]) -> str:
    draw = random.Random(1)
    return "".join("{ " + ", ".join(elements(draw)) + " }\n" for _ in range(count))


def hex_bytes(count: int = PACKETS, length: int = ELEMENTS) -> str:
    """Packets of plain hexadecimal bytes, as capture converters write them."""
    return _packets(count, lambda draw: [f"0x{octet:02x}" for octet in draw.randbytes(length)])


def numbers(count: int = PACKETS) -> str:
    """Packets of numbers in several forms."""
    return _packets(count, lambda draw: [_plain(draw) for _ in range(ELEMENTS)])


def mixed(count: int = PACKETS) -> str:
    """Packets as people write them: numbers in several forms, and a dozen functions among them."""

    def elements(draw: random.Random) -> list[str]:
        plain = [_plain(draw) for _ in range(ELEMENTS - len(_FUNCTIONS))]
        for function in _FUNCTIONS:
            plain.insert(draw.randrange(len(plain) + 1), function)
        return plain

    return _packets(count, elements)
