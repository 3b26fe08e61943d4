"""A packet under construction, and the step that settles its checksums.

Functions and protocols append to a `Draft`; `assemble` turns template, ops and wanted
checksums into a Packet: it orders the checksums (inner before outer, mutual ones in
order of appearance), stores those that never change into the template, and gives
each other one the partial sum of its constant bytes and the list of its changing ones
(semantics section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pktgen_cli.errors import ProgramError
from pktgen_cli.program import DRAWN, Checksum, Op, OpCode, Packet, Term


@dataclass(slots=True)
class Draft:
    """The bytes so far, and what will change them. `number` is the packet's place in the file."""

    number: int
    seed: int
    data: bytearray = field(default_factory=bytearray)
    ops: list[Op] = field(default_factory=list)
    checksums: list[Checksum] = field(default_factory=list)
    checks: list[Callable[[], None]] = field(default_factory=list)
    fields: int = 0

    def new_field(self) -> int:
        """The number of the next random field: its values are keyed by it."""
        self.fields += 1
        return self.fields - 1

    def put_op(
        self, code: OpCode, *, width: int = 1, low: int = 0, high: int = 0, step: int = 0, start: int = 0
    ) -> None:
        """Append `width` zero bytes and the op that will write them."""
        self.ops.append(Op(code, len(self.data), width, low, high, step, start))
        self.data += bytes(width)

    def repeat_op(self, op: Op) -> None:
        """Append the same op at the next place; a random one is a field of its own."""
        start = self.new_field() if op.code in DRAWN else op.start
        self.ops.append(Op(op.code, len(self.data), op.width, op.low, op.high, op.step, start))
        self.data += bytes(op.width)

    def at_end(self, check: Callable[[], None]) -> None:
        """Run `check` when all bytes are there, before the packet is finished."""
        self.checks.append(check)

    def run_checks(self) -> None:
        for check in self.checks:
            check()

    def finish(self, workers: tuple[int, int] | None = None) -> Packet:
        return assemble(bytes(self.data), self.ops, self.checksums, workers=workers)


def fold(total: int) -> int:
    """End-around carry to 16 bits (RFC 1071)."""
    while total > 0xFFFF:
        total = (total >> 16) + (total & 0xFFFF)
    return total


def byte_sum(data: bytes, odd: bool = False) -> int:
    """Sum of the 16-bit big-endian words of `data`, which starts at an odd place if `odd`."""
    padded = (b"\0" if odd else b"") + data
    padded += b"\0" * (len(padded) & 1)
    return sum(padded[0::2]) * 256 + sum(padded[1::2])


def store_value(total: int, zero_is_ffff: bool) -> int:
    """The checksum field for a sum: its complement; UDP sends a computed 0 as ffff (RFC 768)."""
    value = ~fold(total) & 0xFFFF
    return 0xFFFF if value == 0 and zero_is_ffff else value


def covers(outer: Checksum, inner: Checksum, length: int) -> bool:
    """Whether `outer` sums bytes of `inner`'s field in a frame of that length."""
    end = length if outer.last is None else min(outer.last + 1, length)
    spans = [(outer.first, end), (outer.addresses_at, outer.addresses_at + outer.addresses)]
    return any(inner.offset < stop and inner.offset + 2 > start for start, stop in spans)


def checksum_order(checksums: Sequence[Checksum], length: int) -> list[int]:
    """Indices in the order of execution: one that covers another's field runs after it.

    Those that cover each other, directly or in a circle, run in order of appearance.
    """
    count = len(checksums)
    if count == 1:
        return [0]
    waits = [
        sum(1 << j for j, inner in enumerate(checksums) if j != i and covers(outer, inner, length))
        for i, outer in enumerate(checksums)
    ]
    if not any(waits):
        return list(range(count))
    reach = list(waits)
    for middle in range(count):
        for i in range(count):
            if reach[i] >> middle & 1:
                reach[i] |= reach[middle]
    circle = [sum(1 << j for j in range(count) if reach[i] >> j & reach[j] >> i & 1) for i in range(count)]
    before = [waits[i] & ~circle[i] | circle[i] & ((1 << i) - 1) for i in range(count)]
    order: list[int] = []
    left = (1 << count) - 1
    while left:
        ready = next(i for i in range(count) if left >> i & 1 and not before[i] & left)
        order.append(ready)
        left &= ~(1 << ready)
    return order


def length_bounds(ops: Sequence[Op], template: int, tables: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Shortest and longest frame that the ops can make of a template of that length."""
    if not ops or not ops[0].sets_length:
        return template, template
    op = ops[0]
    if op.code in (OpCode.COUNTER, OpCode.RANDOM):
        return op.low, op.high
    if op.code == OpCode.STRIDE:
        return op.low, op.low + (op.high - 1) * op.step
    if op.code in (OpCode.TABLE, OpCode.CHOICE):
        return min(tables[op.table]), max(tables[op.table])
    raise ProgramError(f"{op.code.name} cannot set a frame's length")


def assemble(
    template: bytes,
    ops: Sequence[Op] = (),
    checksums: Sequence[Checksum] = (),
    *,
    workers: tuple[int, int] | None = None,
    weight: int = 1,
    tables: Sequence[Sequence[int]] = (),
) -> Packet:
    """The finished packet. `checksums` need only their place and range; the rest is computed here.

    Raises ProgramError where `check_packet` does.
    """
    shortest, longest = length_bounds(ops, len(template), tables)
    if longest != len(template):
        raise ProgramError(f"lengths up to {longest} need a template of that size, not {len(template)}")
    if shortest == longest:  # the end does not move: count everything from the start
        ops = [op._replace(offset=longest + op.offset) if op.offset < 0 else op for op in ops]
        checksums = [c._replace(offset=longest + c.offset) if c.offset < 0 else c for c in checksums]
    if not checksums:
        return Packet(template, tuple(ops), (), workers, weight, shortest)
    data = bytearray(template)
    for checksum in checksums:
        data[checksum.offset : checksum.offset + 2] = b"\0\0"
    changing = bytearray(len(template))  # 1 where an op, or a checksum that is not static, writes
    for op in ops:
        if op.offset >= 0:
            changing[op.offset : op.offset + op.width] = b"\1" * op.width
    settled = []
    for index in checksum_order(checksums, longest):
        done = _settle(checksums[index], data, changing, ops, shortest, longest)
        if done.static:
            data[done.offset : done.offset + 2] = store_value(done.base, done.zero_is_ffff).to_bytes(2, "big")
        else:
            changing[done.offset : done.offset + 2] = b"\1\1"
        settled.append(done)
    return Packet(bytes(data), tuple(ops), tuple(settled), workers, weight, shortest)


def _settle(
    checksum: Checksum, data: bytearray, changing: bytearray, ops: Sequence[Op], shortest: int, longest: int
) -> Checksum:
    """Fill in base, terms and tail. Its own field, and those of checksums that run later, are zero in `data`."""
    varies = shortest != longest
    covered_end = longest if checksum.last is None else min(checksum.last + 1, longest)
    pieces = [(checksum.first, min(covered_end, shortest))]
    base, terms = 0, []
    if checksum.protocol:
        base += checksum.protocol + (0 if varies else longest - checksum.first)
        pieces.append((checksum.addresses_at, checksum.addresses_at + checksum.addresses))
    for start, end in pieces:
        found = _terms(changing, start, end)
        constant = data[start:end]
        for term in found:
            constant[term.offset - start : term.offset - start + term.width] = bytes(term.width)
        base += byte_sum(bytes(constant))
        terms += found
    tail_at = max(shortest, checksum.first)
    tail = (0, 0)
    if varies and covered_end > tail_at:
        word = bytes(data[tail_at : tail_at + 2]).ljust(2, b"\0")
        odd = (tail_at - checksum.first) & 1
        tail = (word[0] << (0 if odd else 8), word[1] << (8 if odd else 0))
        terms += _end_terms(checksum, ops, shortest, longest)
    static = not terms and not (varies and (checksum.protocol or covered_end > tail_at))
    return Checksum(
        checksum.offset, checksum.first, checksum.last, checksum.protocol, checksum.addresses_at,
        checksum.addresses, base, tuple(terms), tail_at, tail, static,
    )  # fmt: skip


def _terms(changing: bytearray, start: int, end: int) -> list[Term]:
    """Runs of changing bytes in [start, end)."""
    terms = []
    at = start
    while (at := changing.find(1, at, end)) >= 0:
        stop = changing.find(0, at, end)
        stop = end if stop < 0 else stop
        terms.append(Term(at, stop - at, bool((at - start) & 1)))
        at = stop
    return terms


def _end_terms(checksum: Checksum, ops: Sequence[Op], shortest: int, longest: int) -> list[Term]:
    """Changing bytes counted from the end, each once."""
    ranges = sorted((op.offset, op.offset + op.width) for op in ops if op.offset < 0)
    terms: list[Term] = []
    for start, end in ranges:
        if checksum.last is not None and checksum.last < longest - 1:
            raise ProgramError("a checksum over part of a varying tail with fields counted from the end")
        if shortest + start < checksum.first:
            raise ProgramError("a checksum begins inside fields counted from the end")
        if terms and start < terms[-1].offset + terms[-1].width:
            start = terms[-1].offset + terms[-1].width
        if end > start:
            terms.append(Term(start, end - start))
    return terms
