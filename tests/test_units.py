"""Quantities: trafgen's forms, the superset, and what is refused with a suggestion."""

from __future__ import annotations

from fractions import Fraction

import pytest
from conftest import golden

from pktgen_cli.units import (
    UnitError,
    format_count,
    format_ns,
    format_si,
    parse_count,
    parse_rate,
    parse_size,
    parse_time,
)


@pytest.mark.parametrize(("text", "value"), [
    ("0", 0), ("1000", 1000), ("0x3e8", 1000), ("03", 3), ("1_000", 1000), ("10k", 10**4), ("1.5M", 1_500_000),
    ("1000000000000", 10**12), ("1G", 10**9),
])  # fmt: skip
def test_count(text: str, value: int) -> None:
    assert parse_count(text) == value


@pytest.mark.parametrize("text", ["", "-1", "abc", "2x", "1.5", "08", "1e3", "99999999999999999999", "0x", "1 000"])
def test_bad_count(text: str) -> None:
    with pytest.raises(UnitError):
        parse_count(text)


@pytest.mark.parametrize(("text", "ns"), [
    ("1", 1000), ("10us", 10**4), ("1ms", 10**6), ("1s", 10**9), ("20000ns", 20000), ("0", 0), ("0x10ms", 16 * 10**6),
    ("1.5s", 15 * 10**8), ("0.5ns", Fraction(1, 2)), ("1 s", 10**9), ("1m", 60 * 10**9), ("2h", 7200 * 10**9),
])  # fmt: skip
def test_time(text: str, ns: Fraction) -> None:
    assert parse_time(text, bare="us") == ns


@pytest.mark.parametrize("text", ["x", "", "1parsec", "-1s", "1e400", "1S"])
def test_bad_time(text: str) -> None:
    with pytest.raises(UnitError):
        parse_time(text, bare="us")


@pytest.mark.parametrize(("text", "period"), [
    ("2pps", 5 * 10**8), ("10kpps", 10**5), ("1Mpps", 1000), ("1Mp/s", 1000), ("0.5pps", 2 * 10**9),
    ("3pps", Fraction(10**9, 3)), ("6B", 10**11), ("1kB", 6 * 10**8), ("1MB", 6 * 10**5), ("1GB", 600),
    ("1kbit", 48 * 10**8), ("10Mbit", 48000 * 10), ("1Gbit", 4800), ("1Gbit/s", 4800), ("1Gbps", 4800),
    ("1KiB", Fraction(600 * 10**9, 1024)), ("1MiB", Fraction(600 * 10**9, 1024**2)), ("1GB/s", 600),
    ("8Gbit@l1", 624), ("8Gbit@l2", 600),
])  # fmt: skip
def test_rate_of_frames_of_600_bytes(text: str, period: Fraction) -> None:
    assert parse_rate(text).packet_period(Fraction(600), None) == period


def test_share_of_the_link() -> None:
    assert parse_rate("50%").packet_period(Fraction(600), 10**10) == Fraction(624 * 8 * 10**9, 5 * 10**9)
    with pytest.raises(UnitError, match="speed"):
        parse_rate("50%").packet_period(Fraction(600), None)


@pytest.mark.parametrize("text", ["0", "0pps", "0bit"])
def test_zero_is_no_limit(text: str) -> None:
    assert parse_rate(text).packet_period(Fraction(60), None) is None


@pytest.mark.parametrize(("text", "hint"), [
    ("1mb", "Mbit or MB"), ("1kb", "kbit or kB"), ("1KB", "kbit or kB"), ("1b", "bits or bytes"),
    ("1mbit", "did you mean Mbit"), ("1Kbit", "did you mean kbit"), ("1PPS", "did you mean pps"),
    ("1MPPS", "did you mean Mpps"), ("1", "unit is missing"), ("1ppsfoo", "not known"), ("1TiB", "not known"),
    ("x", "begin with a number"), ("", "begin with a number"), ("-1pps", "begin with a number"), ("101%", "100%"),
    ("1e400pps", "not known"), ("10Mbit@l3", "@l1 or @l2"), ("1pps@l1", "not to packets"), ("9999999999Gbit", "above"),
])  # fmt: skip
def test_bad_rate(text: str, hint: str) -> None:
    with pytest.raises(UnitError, match=hint):
        parse_rate(text)


def test_what_trafgen_accepts_has_trafgens_meaning() -> None:
    """Each -b and -t of the recorded command lines that trafgen took is taken, with exceptions named here."""
    ours_refuse = {"1ppsfoo"}
    for line in golden("cli.jsonl"):
        argv = line["argv"]
        for option, parse in (("-b", parse_rate), ("-t", lambda t: parse_time(t, bare="us"))):
            if option in argv[:-1] and line["rc"] == 0:
                text = argv[argv.index(option) + 1]
                if text in ours_refuse:
                    with pytest.raises(UnitError):
                        parse(text)
                else:
                    assert parse(text) is not None


@pytest.mark.parametrize(("text", "size"), [("512KiB", 2**19), ("8MiB", 2**23), ("1GiB", 2**30), ("0.5KiB", 512)])
def test_size(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["1", "1MB", "x", "0KiB", "0.3KiB", "9999GiB"])
def test_bad_size(text: str) -> None:
    with pytest.raises(UnitError):
        parse_size(text)


def test_numbers_for_people() -> None:
    assert format_si(1_488_095, "pps") == "1.488 Mpps"
    assert format_si(0.25, "pps") == "0.25 pps"
    assert format_si(999.96, "bit/s") == "1.000 kbit/s"
    assert format_count(1234567) == "1,234,567"
    assert format_ns(1_500_000_000) == "1.500 s"
    assert format_ns(80) == "80 ns"
