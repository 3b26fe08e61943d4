"""The language's functions: one entry each in `FUNCTIONS` (language.md section 2).

An entry gives the names, how the call is written, how many arguments it takes, and a
procedure that appends to the packet under construction. Arguments come evaluated;
whatever does not fit its place is cut with a warning, what makes no sense is an error
at that argument.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pktgen_cli.assembly import Draft
from pktgen_cli.program import MAX_FRAME, Checksum, OpCode, field_key, random_bytes

Report = Callable[[str, int, str, tuple[str, ...]], None]
"""severity, index of the argument (-1: the whole call), message, hints."""


@dataclass(slots=True)
class Arguments:
    """The evaluated arguments of one call, and how to complain about them."""

    name: str
    values: list[int]
    report: Report

    def __len__(self) -> int:
        return len(self.values)

    def error(self, index: int, message: str, *hints: str) -> None:
        self.report("error", index, message, hints)

    def warn(self, index: int, message: str, *hints: str) -> None:
        self.report("warning", index, message, hints)

    def fit(self, index: int, width: int, what: str) -> int:
        """The value cut to `width` bytes; a warning unless it fits as signed or unsigned."""
        value = self.values[index]
        bits = 8 * width
        cut: int = value & (2**bits - 1)
        if not -(2 ** (bits - 1)) <= value < 2**bits:
            size = "a byte" if width == 1 else f"{width} bytes"
            self.warn(index, f"{what} {value} does not fit in {size}: cut to {cut:#x}")
        return cut

    def count(self, index: int, least: int) -> int:
        """A number of bytes from `least` to MAX_FRAME; anything else is an error and counts as `least`."""
        value = self.values[index]
        if value < least:
            self.error(index, f"count {value} is below {least}")
        elif value > MAX_FRAME:
            self.error(index, f"count {value} is above the largest frame, {MAX_FRAME} bytes")
        return value if least <= value <= MAX_FRAME else least


@dataclass(frozen=True, slots=True)
class Function:
    """How a function is written and what it does."""

    names: tuple[str, ...]
    signature: str
    least: int
    most: int
    emit: Callable[[Draft, Arguments], None]
    adds: str = ""
    """"bytes" or "op" when that is all it adds, and it depends on the arguments alone."""


def _fill(draft: Draft, a: Arguments) -> None:
    draft.data += bytes([a.fit(0, 1, "value")]) * a.count(1, 1)


def _rnd(draft: Draft, a: Arguments) -> None:
    count = a.count(0, 1) if len(a) else 1
    draft.data += random_bytes(field_key(draft.seed, draft.number, draft.new_field()), 0, count)


def _sequence(sign: int) -> Callable[[Draft, Arguments], None]:
    def emit(draft: Draft, a: Arguments) -> None:
        start, count = a.fit(0, 1, "start"), a.count(1, 1)
        step = sign * a.fit(2, 1, "step") if len(a) > 2 else sign
        cycle = bytes((start + i * step) & 0xFF for i in range(min(count, 256)))
        draft.data += (cycle * (count // 256 + 1))[:count]

    return emit


def _const(width: int) -> Callable[[Draft, Arguments], None]:
    def emit(draft: Draft, a: Arguments) -> None:
        draft.data += a.fit(0, width, "value").to_bytes(width, "big")

    return emit


def _drnd(draft: Draft, a: Arguments) -> None:
    count = a.count(0, 0) if len(a) else 1
    if count:
        draft.put_op(OpCode.BYTES, width=count, start=draft.new_field())


def _counter(down: bool) -> Callable[[Draft, Arguments], None]:
    """A byte that advances before use; `ddec` is the same walk downwards, from max (semantics section 2)."""

    def emit(draft: Draft, a: Arguments) -> None:
        low, high = a.fit(0, 1, "minimum"), a.fit(1, 1, "maximum")
        step = a.fit(2, 1, "step") if len(a) > 2 else 1
        if len(a) > 2 and a.values[2] < 0:
            a.error(2, f"step {a.values[2]} is negative", f"{'dinc' if down else 'ddec'} counts the other way")
        if low > high and down:
            a.warn(-1, f"ddec counts from its maximum down: bounds swapped to {high}, {low}")
            low, high = high, low
        elif low > high:
            a.error(0, f"minimum {low} is above maximum {high}", f"write {a.name}({high}, {low})")
            high = low
        size = high - low + 1
        if down:
            start, step = (size - 1 - step) % size, -step % size
        else:
            start, step = step % size, step % size
        draft.put_op(OpCode.COUNTER, low=low, high=high, step=step, start=start)

    return emit


MAX_CHECKSUMS = 256


def _offsets(draft: Draft, a: Arguments) -> tuple[int, int] | None:
    for index in (0, 1):
        if not 0 <= a.values[index] < 2**31:
            a.error(index, f"offset {a.values[index]} is outside 0..{2**31 - 1}")
            return None
    if len(draft.checksums) >= MAX_CHECKSUMS:
        a.error(-1, f"more than {MAX_CHECKSUMS} checksums in one packet")
        return None
    return min(a.values), max(a.values)


def _csum_range(draft: Draft, a: Arguments) -> None:
    offsets = _offsets(draft, a)
    if offsets is not None:
        first, last = offsets
        draft.checksums.append(Checksum(len(draft.data), first, last))
        draft.at_end(lambda: _warn_beyond(draft, a, first))
    draft.data += b"\0\0"


def _warn_beyond(draft: Draft, a: Arguments, first: int) -> None:
    if first >= len(draft.data):
        a.warn(-1, f"the packet ends at {len(draft.data) - 1}, before {first}: nothing is summed")


def _csum_pseudo(protocol: int, version: int) -> Callable[[Draft, Arguments], None]:
    """Checksum from the second offset to the packet's end, with the pseudo-header of the IP header at the first."""
    addresses_at, addresses = (12, 8) if version == 4 else (8, 32)

    def emit(draft: Draft, a: Arguments) -> None:
        offsets = _offsets(draft, a)
        if offsets is not None and offsets[0] == offsets[1]:
            a.error(1, f"both offsets are {offsets[0]}", f"{a.name} takes the IP header's and the next header's offset")
        elif offsets is not None:
            ip, start = offsets
            draft.at_end(lambda: _check_headers(draft, a, ip + addresses_at + addresses, start))
            place = len(draft.data)
            draft.checksums.append(Checksum(place, start, None, protocol, ip + addresses_at, addresses))
        draft.data += b"\0\0"

    return emit


def _check_headers(draft: Draft, a: Arguments, addresses_end: int, start: int) -> None:
    if max(addresses_end, start) > len(draft.data):
        what = "IP addresses end" if addresses_end > start else "sum starts"
        a.error(-1, f"the {what} at {max(addresses_end, start)}, but the packet has {len(draft.data)} bytes")


def _table() -> dict[str, Function]:
    functions = [
        Function(("fill",), "fill(value, count)", 2, 2, _fill, adds="bytes"),
        Function(("rnd",), "rnd(count)", 0, 1, _rnd),
        Function(("drnd",), "drnd(count)", 0, 1, _drnd, adds="op"),
        Function(("seqinc",), "seqinc(start, count [, step])", 2, 3, _sequence(1), adds="bytes"),
        Function(("seqdec",), "seqdec(start, count [, step])", 2, 3, _sequence(-1), adds="bytes"),
        Function(("dinc",), "dinc(min, max [, step])", 2, 3, _counter(down=False), adds="op"),
        Function(("ddec",), "ddec(min, max [, step])", 2, 3, _counter(down=True), adds="op"),
        Function(
            ("csumip", "csum16", "csumip4", "csumicmp", "csumicmp4"), "csumip(from, to)", 2, 2, _csum_range
        ),
    ]
    for width in (1, 2, 4, 8):
        names = (f"const{8 * width}", f"c{8 * width}")
        functions.append(Function(names, f"const{8 * width}(value)", 1, 1, _const(width), adds="bytes"))
    for name, protocol, version in (
        ("csumudp", 17, 4), ("csumtcp", 6, 4), ("csumudp6", 17, 6), ("csumtcp6", 6, 6), ("csumicmp6", 58, 6),
    ):  # fmt: skip
        signature = f"{name}(IP offset, {'UDP' if protocol == 17 else 'TCP' if protocol == 6 else 'ICMPv6'} offset)"
        functions.append(Function((name,), signature, 2, 2, _csum_pseudo(protocol, version)))
    return {name: function for function in functions for name in function.names}


FUNCTIONS: dict[str, Function] = _table()
"""By lower-case name, synonyms included."""
