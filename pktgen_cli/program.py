"""The intermediate representation: what a description means, and nothing else.

A `Packet` is a template (every byte that is known, already in place) and the ops that
change it. A `Program` is a tuple of packets with the seed. Both are immutable. Every
value is a pure function of (seed, packet, field, occurrence), in unsigned 64-bit
integer arithmetic modulo 2^64 (semantics section 2), so that each executor, plain
Python, Cython or eBPF, gives the same frame for the same slot. Ops and checksums are
named tuples, because a large description makes many and a frozen dataclass takes four
times as long to make.

Op codes live here, so that the language and `show` work without the compiled half; a
test holds them equal to the compiled ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from pktgen_cli.errors import ProgramError

MASK64 = 2**64 - 1
MAX_FRAME = 16 * 2**20
"""Bytes of the largest frame a Program may hold; files take it, links refuse far less."""


class OpCode(IntEnum):
    """How an op makes its value from the occurrence m; R is high - low + 1, and 0 stands for 2^64."""

    COUNTER = 1  # low + (start + m * step) mod R
    STRIDE = 2  # low + (m mod high) * step
    CARRY = 3  # low + carry out of the 64-bit sum start + m * step: the high half of a wide counter
    RANDOM = 4  # low + u(start, m) mod R, `start` being the field's number
    BYTES = 5  # `width` bytes from successive words of u(start, m), low byte first
    TABLE = 6  # table[(start + m * step) mod n]
    CHOICE = 7  # table[u(start, m) mod n]
    LENGTH = 8  # frame length + start, modulo 2^64


DRAWN = frozenset((OpCode.RANDOM, OpCode.BYTES, OpCode.CHOICE))
"""Codes whose values are drawn: `start` is the field's number."""


class Op(NamedTuple):
    """One value written before each transmission.

    `offset` counts bytes from the start of the frame, or from its end when negative.
    `width` is in bytes, 1 to 8 (BYTES: any); the value is stored big endian as
    (old & ~mask) | ((value << shift) & mask). Width 0 sets the frame's length instead
    and must come first. A field wider than 8 bytes is two ops.
    """

    code: OpCode
    offset: int = 0
    width: int = 1
    low: int = 0
    high: int = 0
    step: int = 0
    start: int = 0
    mask: int = MASK64
    shift: int = 0
    table: int = -1

    @property
    def sets_length(self) -> bool:
        return self.width == 0

    @property
    def range(self) -> int:
        """R of the code's definition; 0 stands for 2^64."""
        return (self.high - self.low + 1) & MASK64

    @property
    def slow(self) -> bool:
        """Whether m * step mod R takes the 64-round double-and-add loop (semantics section 2)."""
        size = self.range
        return self.code == OpCode.COUNTER and size > 2**32 and size & (size - 1) != 0


class Term(NamedTuple):
    """A run of changing bytes inside a checksum: added at run time.

    `odd` is its parity relative to the start of the sum. A negative offset counts from
    the end; such a term takes its parity from the frame's length and also takes back
    the template's bytes at its place, which the tail of the sum has counted.
    """

    offset: int
    width: int
    odd: bool = False


class Checksum(NamedTuple):
    """An Internet checksum (RFC 1071) of bytes `first`..`last`, stored big endian at `offset`.

    `last` is inclusive and cut to the frame; None means the end of the frame. With
    `protocol` the pseudo-header is added: `addresses` bytes (8 or 32) at
    `addresses_at`, the protocol number, and the length from `first` to the frame's end
    (RFC 768, RFC 8200 section 8.1); a computed 0 is sent as ffff for UDP (17).

    The rest is settled when the packet is assembled: `base` is the partial sum of the
    bytes that no op writes, `terms` are the others. With a varying length, bytes
    from `tail_at` on are one repeated word: they add `tail` (the contributions of even
    and odd tail bytes) by count. `static` checksums already stand in the template.
    """

    offset: int
    first: int
    last: int | None = None
    protocol: int = 0
    addresses_at: int = 0
    addresses: int = 0
    base: int = 0
    terms: tuple[Term, ...] = ()
    tail_at: int = 0
    tail: tuple[int, int] = (0, 0)
    static: bool = False

    @property
    def zero_is_ffff(self) -> bool:
        return self.protocol == 17


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet description: `template` has the largest length.

    `ops` are applied in order, then `checksums` in theirs. `workers` is the inclusive
    range of worker numbers of a `cpu()` selector, None for all. `weight` is its
    share of the slots (semantics section 1).
    """

    template: bytes
    ops: tuple[Op, ...] = ()
    checksums: tuple[Checksum, ...] = ()
    workers: tuple[int, int] | None = None
    weight: int = 1
    min_length: int = -1

    def __post_init__(self) -> None:
        if self.min_length < 0:
            object.__setattr__(self, "min_length", len(self.template))
        if self.ops or self.checksums or self.min_length != len(self.template):
            check_packet(self)

    @property
    def max_length(self) -> int:
        return len(self.template)

    @property
    def varies(self) -> bool:
        """Whether the frame's length changes."""
        return self.min_length != len(self.template)

    @property
    def live_checksums(self) -> tuple[Checksum, ...]:
        return tuple(c for c in self.checksums if not c.static)


@dataclass(frozen=True, slots=True)
class Program:
    """Packets in file order with what their values depend on.

    `random_order` draws each slot's packet (`-r`); otherwise they take turns. `tables` are side
    tables of 64-bit values that ops may name.
    """

    packets: tuple[Packet, ...]
    seed: int = 0
    random_order: bool = False
    tables: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        for number, packet in enumerate(self.packets):
            for op in packet.ops:
                needs_table = op.code in (OpCode.TABLE, OpCode.CHOICE)
                if needs_table and not (0 <= op.table < len(self.tables) and self.tables[op.table]):
                    raise ProgramError(f"packet {number}: table {op.table} does not exist or is empty")

    @property
    def max_length(self) -> int:
        return max((p.max_length for p in self.packets), default=0)


def check_packet(packet: Packet) -> None:
    """Raise ProgramError unless every op stays inside the shortest frame and fields keep apart.

    A field counted from the end may never meet one counted from the start: what a
    checksum adds would then depend on the length in two ways.
    """
    shortest, longest = packet.min_length, packet.max_length
    if not 0 <= shortest <= longest <= MAX_FRAME:
        raise ProgramError(f"frame length {shortest}..{longest} is outside 0..{MAX_FRAME}")
    if packet.varies:
        tail = packet.template[shortest:]
        if tail != (tail[:2] * (len(tail) // 2 + 1))[: len(tail)]:
            raise ProgramError("bytes past the shortest length are not one repeated word")
        if not (packet.ops and packet.ops[0].sets_length):
            raise ProgramError("a frame of varying length needs an op that sets it")
    from_start, from_end = 0, 0
    for number, op in enumerate(packet.ops):
        if op.sets_length:
            if number:
                raise ProgramError("the op that sets the length must be the first")
            continue
        limit = MAX_FRAME if op.code == OpCode.BYTES else 8
        end = op.offset + op.width
        inside = end <= shortest if op.offset >= 0 else -op.offset <= shortest and end <= 0
        if not (1 <= op.width <= limit and inside):
            raise ProgramError(f"op {number}: {op.width} bytes at {op.offset} leave a frame of {shortest}")
        if not (0 <= op.shift < 64 and 0 <= op.mask <= MASK64):
            raise ProgramError(f"op {number}: shift {op.shift} or mask is out of range")
        if op.code == OpCode.STRIDE and op.high == 0:
            raise ProgramError(f"op {number}: a stride needs at least one step")
        if op.offset >= 0:
            from_start = max(from_start, end)
        else:
            from_end = max(from_end, -op.offset)
    for checksum in packet.checksums:
        if checksum.offset < 0 or checksum.offset + 2 > shortest:
            raise ProgramError(f"checksum at {checksum.offset} leaves a frame of {shortest}")
        if checksum.protocol and max(checksum.first, checksum.addresses_at + checksum.addresses) > shortest:
            raise ProgramError(f"checksum at {checksum.offset} covers headers outside a frame of {shortest}")
        from_start = max(from_start, checksum.offset + 2)
    places = sorted(checksum.offset for checksum in packet.checksums)
    if any(after - before < 2 for before, after in pairwise(places)):
        raise ProgramError("two checksums share a field")
    for checksum in packet.checksums:
        at = checksum.offset
        if any(op.offset < at + 2 and at < op.offset + op.width for op in packet.ops if op.offset >= 0):
            raise ProgramError(f"an op writes into the checksum at {at}")
    if packet.varies and from_end and from_start > shortest - from_end:
        raise ProgramError("a field counted from the end meets one counted from the start")


# Random values: a counter-based generator. `mix` is the 64-bit finaliser of SplitMix64
# (Steele, Lea and Flood, OOPSLA 2014); occurrences and words step through odd constants.

STEP_OCCURRENCE = 0x9E3779B97F4A7C15
STEP_WORD = 0xD1B54A32D192ED03
ORDER_PACKET = MASK64
"""The "packet" whose key draws the order of `-r`."""


def mix(value: int) -> int:
    value &= MASK64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK64
    return value ^ (value >> 31)


def field_key(seed: int, packet: int, field: int) -> int:
    """Key of one field's values: packets and fields are numbered from 0 in file order."""
    return mix(mix(mix(seed) + (packet + 1) * STEP_OCCURRENCE) + (field + 1) * STEP_WORD)


def random_word(key: int, occurrence: int, word: int = 0) -> int:
    """u: 64 uniform bits for that occurrence; more words for byte runs."""
    return mix(key + (occurrence + 1) * STEP_OCCURRENCE + word * STEP_WORD)


def random_bytes(key: int, occurrence: int, count: int) -> bytes:
    words = (random_word(key, occurrence, i) for i in range((count + 7) // 8))
    return b"".join(word.to_bytes(8, "little") for word in words)[:count]


def listing(program: Program, packets: range | None = None) -> Iterator[str]:
    """The Program as text, one line a packet, op and checksum."""
    for number in packets or range(len(program.packets)):
        packet = program.packets[number]
        length = f"{packet.max_length}" if not packet.varies else f"{packet.min_length}..{packet.max_length}"
        where = ""
        if packet.workers is not None:
            where = f", workers {packet.workers[0]}-{packet.workers[1]}"
        dynamic = "static" if not packet.ops and not packet.live_checksums else "dynamic"
        yield f"packet {number}: {length} bytes, {dynamic}{where}"
        for op in packet.ops:
            yield f"  {_place(op.offset, op.width)} {_value(op, program)}"
        for checksum in packet.checksums:
            yield f"  {_place(checksum.offset, 2)} {_sum(checksum)}"


def _place(offset: int, width: int) -> str:
    if width == 0:
        return f"{'length':<12}"
    first = f"{offset}" if offset >= 0 else f"end{offset}"
    return f"{first + (f'+{width}' if width > 1 else ''):<12}"


def _value(op: Op, program: Program) -> str:
    if op.code == OpCode.COUNTER:
        text = f"counter {op.low}..{op.high} step {op.step} start {op.low + op.start}"
        text += "  (slow: 64-round multiplication)" if op.slow else ""
    elif op.code == OpCode.STRIDE:
        text = f"counter from {op.low}, {op.high} steps of {op.step}"
    elif op.code == OpCode.CARRY:
        text = f"counter's high half from {op.low}, step {op.step}"
    elif op.code == OpCode.RANDOM:
        text = f"random {op.low}..{op.high} (field {op.start})"
    elif op.code == OpCode.BYTES:
        text = f"random bytes (field {op.start})"
    elif op.code in (OpCode.TABLE, OpCode.CHOICE):
        order = "in turn" if op.code == OpCode.TABLE else "at random"
        text = f"table {op.table}, {len(program.tables[op.table])} values {order}"
    else:
        text = f"frame length + {op.start}" if op.start < 2**63 else f"frame length - {2**64 - op.start}"
    full = op.width == 0 or op.mask & (2 ** (8 * min(op.width, 8)) - 1) == 2 ** (8 * min(op.width, 8)) - 1
    return text + ("" if full else f", bits {op.mask:#x} shifted {op.shift}")


def _sum(checksum: Checksum) -> str:
    last = "end" if checksum.last is None else str(checksum.last)
    text = f"checksum {checksum.first}..{last}"
    if checksum.protocol:
        text += f" with addresses at {checksum.addresses_at}+{checksum.addresses}, protocol {checksum.protocol}"
    if checksum.static:
        return text + ", static"
    changing = sum(term.width for term in checksum.terms)
    return text + f", base {checksum.base:#x}, {changing} changing bytes in {len(checksum.terms)} terms"
