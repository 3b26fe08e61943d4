"""Quantities as users write them, and back.

One grammar for all options. Counts are integers, times are nanoseconds, rates are
exact fractions: nothing here goes through a float, so 3pps is a third of a second and
stays one after 10^12 packets. A unit whose meaning differs by case or by a factor of
eight (mb, kb) is refused with both readings instead of guessed.

Layers: a rate in bits counts frame bytes without FCS (layer 2, as trafgen does) unless
`@l1` is given; layer 1 adds 4 bytes FCS, 8 preamble and 12 gap a frame.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

LAYER1_OVERHEAD = 24
"""Bytes a frame takes on an Ethernet wire beside its own: FCS 4, preamble 8, gap 12 (IEEE 802.3)."""

NS = 10**9
MAX_COUNT = 2**63 - 1
MAX_DIGITS = 60

_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9](?:_?[0-9])*(?:\.[0-9]+)?)(.*)", re.S)
_TIME = {
    "ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": NS, "sec": NS, "m": 60 * NS, "min": 60 * NS,
    "h": 3600 * NS,
}  # fmt: skip
_SCALE = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
_BINARY = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_PER_UNIT = {"pps": 0, "p/s": 0, "bit": 1, "bit/s": 1, "bps": 1, "B": 8, "B/s": 8}
_RATE_UNITS = "pps kpps Mpps bit kbit Mbit Gbit B kB MB GB KiB MiB GiB %"


class UnitError(ValueError):
    """The text is no quantity of the wanted kind; the message says which forms are."""


def _number(text: str, what: str, forms: str) -> tuple[Fraction, str]:
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise UnitError(f"{what} {text!r} does not begin with a number; write {forms}")
    digits = match[1].replace("_", "")
    if len(digits) > MAX_DIGITS:
        raise UnitError(f"{what} of {len(digits)} digits is too long")
    if digits[:2] in ("0x", "0X"):
        return Fraction(int(digits, 16)), match[2].strip()
    if len(digits) > 1 and digits[0] == "0" and "." not in digits:
        if set(digits) - set("01234567"):
            raise UnitError(f"{what} {text!r}: a number with a leading 0 is octal")
        return Fraction(int(digits, 8)), match[2].strip()
    return Fraction(digits), match[2].strip()


def parse_count(text: str) -> int:
    """Packets: 1000, 0x3e8, 1_000, 10k, 1M. 0 means endless."""
    value, unit = _number(text, "count", "a number such as 1000 or 10k")
    if unit not in _SCALE:
        raise UnitError(f"count {text!r}: {unit!r} is no suffix; use k, M or G, or none")
    value *= _SCALE[unit]
    if value.denominator != 1:
        raise UnitError(f"count {text!r} is not a whole number")
    if value > MAX_COUNT:
        raise UnitError(f"count {text!r} is above {MAX_COUNT}")
    return int(value)


def parse_time(text: str, *, bare: str) -> Fraction:
    """Nanoseconds from 10us, 1.5ms, 2s, 1m; a bare number has the unit `bare`."""
    value, unit = _number(text, "time", "a number and ns, us, ms, s, m or h")
    if unit and unit not in _TIME:
        raise UnitError(f"time {text!r}: unit {unit!r} is not known; use ns, us, ms, s, m or h")
    value *= _TIME[unit or bare]
    if value >= 2**63:
        raise UnitError(f"time {text!r} is longer than 292 years")
    return value


def parse_size(text: str) -> int:
    """Bytes from 512KiB, 8MiB, 1GiB; the unit is required, as in trafgen."""
    value, unit = _number(text, "size", "a number and KiB, MiB or GiB")
    if unit not in _BINARY:
        raise UnitError(f"size {text!r}: unit {unit!r} is not known; use KiB, MiB or GiB")
    value *= _BINARY[unit]
    if value.denominator != 1 or not 0 < value < 2**40:
        raise UnitError(f"size {text!r} is not between 1 byte and 1 TiB")
    return int(value)


@dataclass(frozen=True, slots=True)
class Rate:
    """An aggregate rate over all workers.

    `kind` is "packets" (per second), "bits" (per second on `layer`) or "share" (of the
    link's speed on layer 1); `value` is 0 for "no limit".
    """

    kind: str
    value: Fraction
    layer: int = 2
    text: str = ""

    def packet_period(self, frame_bytes: Fraction, link_bits: int | None) -> Fraction | None:
        """Nanoseconds between packets for frames of that mean length without FCS; None for no limit."""
        if self.value == 0:
            return None
        if self.kind == "packets":
            return NS / self.value
        bits = self.value
        layer = self.layer
        if self.kind == "share":
            if not link_bits:
                raise UnitError(f"rate {self.text!r}: the speed of this output is not known; give bit/s or pps")
            bits, layer = self.value * link_bits, 1
        on_wire = frame_bytes + (LAYER1_OVERHEAD if layer == 1 else 0)
        return on_wire * 8 * NS / bits


def parse_rate(text: str) -> Rate:
    """A rate: 100pps, 10kpps, 10Mbit, 1.5GB, 10Gbps@l1, 50%. 0 means no limit."""
    value, unit = _number(text, "rate", f"a number and one of {_RATE_UNITS}")
    unit, at, layer_name = unit.partition("@")
    if at and layer_name not in ("l1", "l2"):
        raise UnitError(f"rate {text!r}: {at + layer_name!r} is not known; use @l1 or @l2")
    layer = 1 if layer_name == "l1" else 2
    if value == 0 and not unit:
        return Rate("packets", Fraction(0), text=text)
    if unit == "%":
        if value > 100:
            raise UnitError(f"rate {text!r} is above 100%")
        return Rate("share", value / 100, 1, text)
    if unit in _BINARY:
        return Rate("bits", value * _BINARY[unit] * 8, layer, text)
    for scale, factor in _SCALE.items():
        if unit.startswith(scale) and unit[len(scale) :] in _PER_UNIT:
            bits = _PER_UNIT[unit[len(scale) :]]
            if value * factor > 10**15:
                raise UnitError(f"rate {text!r} is above 10^15 a second")
            if bits == 0:
                if at:
                    raise UnitError(f"rate {text!r}: layers apply to bits and bytes, not to packets")
                return Rate("packets", value * factor, text=text)
            return Rate("bits", value * factor * bits, layer, text)
    raise UnitError(f"rate {text!r}: {_rate_hint(unit)}")


def _rate_hint(unit: str) -> str:
    if not unit:
        return f"a unit is missing; use one of {_RATE_UNITS}"
    folded = unit.lower()
    letter = folded[:1].upper().replace("K", "k") if folded[:1] in "kmg" and len(folded) > 1 else ""
    if folded in ("b", "kb", "mb", "gb"):
        return f"unit {unit!r} may mean bits or bytes; write {letter}bit or {letter}B"
    for end in ("pps", "bit", "bps"):
        if folded == end or (letter and folded[1:] == end):
            return f"unit {unit!r} is not known; did you mean {letter}{end}?"
    return f"unit {unit!r} is not known; use one of {_RATE_UNITS}"


def format_count(value: int) -> str:
    return f"{value:,}"


def format_si(value: float, unit: str) -> str:
    """1488095 pps as "1.488 Mpps"; small values keep their digits, so nothing shows as 0.00."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor * 0.9995:
            return f"{value / factor:.3f} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def format_ns(value: int) -> str:
    """A duration for people: 1.500 s, 20.000 ms, 12.5 us, 80 ns."""
    for factor, unit in ((NS, "s"), (10**6, "ms"), (10**3, "us")):
        if value >= factor:
            return f"{value / factor:.3f} {unit}"
    return f"{value} ns"
