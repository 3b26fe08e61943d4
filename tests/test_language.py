"""The byte-level language against the golden vectors and errors (language.md sections 1 to 3)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import golden

from pktgen_cli import reference
from pktgen_cli.compiler import Compiled, compile_source
from pktgen_cli.diagnostics import Source
from pktgen_cli.errors import ConfigError
from pktgen_cli.schedule import make_schedule, pick, worker_slots

AREAS = ("lex", "expr", "const", "fill", "seqinc", "seqdec", "rnd", "drnd", "dinc", "ddec", "csum", "cpu", "multi")
RAW_NET = ("net-raw-01", "net-multi-01")
HARMLESS = frozenset(
    (
        "syn-017", "syn-018", "syn-020", "syn-021", "syn-027", "syn-028", "syn-030", "syn-031",
        "syn-032", "syn-033", "syn-035", "syn-036", "syn-037", "syn-038", "syn-040", "syn-042",
        "syn-049", "syn-051", "syn-052", "syn-053", "syn-071", "syn-072", "syn-073", "syn-083",
        "crash-02",
    )
)
"""Refused by trafgen for blanks, comments and expressions that the superset of language.md 1.9 accepts."""

VECTORS = [
    v for v in golden("vectors.jsonl")
    if (v["id"].split("-")[0] in AREAS or v["id"] in RAW_NET) and not v.get("cpp")
]  # fmt: skip


def compiled(text: str | bytes, *, strict: bool = False, rand: bool = False, seed: int = 1) -> Compiled:
    data = text if isinstance(text, bytes) else text.encode()
    return compile_source(Source("t.cfg", data), seed=seed, strict=strict, random_order=rand)


def frames(text: str | bytes, count: int, *, rand: bool = False, seed: int = 1, workers: int = 1) -> list[str]:
    """The frames of a run as hex, worker 0's first."""
    program = compiled(text, rand=rand, seed=seed).program
    schedule = make_schedule(program, workers=workers, count=count)
    slots = [s for w in range(workers) for s in worker_slots(schedule, w, count)]
    return [reference.frame(program, *pick(program, group, slot)).hex() for group, slot in slots]


def messages(text: str | bytes, *, strict: bool = False) -> str:
    with pytest.raises(ConfigError) as caught:
        compiled(text, strict=strict)
    return caught.value.render()


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["id"])
def test_vector(vector: dict[str, Any]) -> None:
    count = int(vector["args"][vector["args"].index("-n") + 1])
    rand = "-r" in vector["args"]
    if vector.get("quirk") and not vector.get("keep"):
        wanted = vector.get("correct_packets")
        if wanted is None:  # language.md names an error as the sensible outcome
            assert "error:" in messages(vector["cfg"])
            return
    else:
        wanted = vector["packets"]
    found = frames(vector["cfg"], count, rand=rand)
    if vector.get("seeded"):  # the bytes are glibc's: only shape and repeatability count
        assert [len(f) for f in found] == [len(p) for p in wanted]
        assert found == frames(vector["cfg"], count, rand=rand)
    else:
        assert found == wanted


@pytest.mark.parametrize("bad", golden("errors.jsonl"), ids=lambda e: e["id"])
def test_error_is_refused_with_its_place(bad: dict[str, Any]) -> None:
    if bad["id"] in HARMLESS:
        assert len(compiled(bad["cfg"]).program.packets) == 1
        return
    text = messages(bad["cfg"])
    assert re.match(r"t\.cfg:1:\d+: error: ", text)
    assert re.search(r"^ +\| +\^~*$", text, re.M)


def test_message_has_place_caret_and_hint() -> None:
    assert messages("{ 1,\n  fil(0xab, 4),\n}") == (
        "t.cfg:2:3: error: unknown function fil\n"
        "    2 |   fil(0xab, 4),\n"
        "      |   ^~~\n"
        "      hint: did you mean fill?\n"
    )


def test_all_errors_in_one_run() -> None:
    text = messages("{ fill(1) }\n{ c16(1/0), @, foo }\n{ 08, fill(1,2)fill(2,2) }\n{ 1")
    places = re.findall(r"^t\.cfg:(\d+):(\d+): error", text, re.M)
    assert places == [("1", "3"), ("2", "9"), ("2", "13"), ("2", "16"), ("3", "3"), ("3", "16"), ("4", "1")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ 1, @2 }", "'@' does not belong"),
        ("{ 08 }", "leading 0 means octal"),
        ("{ 0x }", "has no digits"),
        ("{ '\\n' }", "a character is one byte"),
        ('{ "abc }', "string is not closed"),
        ('{ "" }', "empty string"),
        ("{ /* c }", "comment is not closed"),
        ("{ 1,,2 }", "two commas"),
        ("{}", "empty packet"),
        ("{,}", "empty packet"),
        ("{ 1 } }", "one '}' too many"),
        ("{ 1 }, { 2 }", "separated by blanks"),
        ("{ 1+1 }", "operators stand only inside"),
        ("{ fill }", "write fill(value, count)"),
        ("{ fill(1) }", "takes 2 arguments, not 1"),
        ("{ fill(1,2 }", "'(' is not closed"),
        ("{ fill(1,0) }", "count 0 is below 1"),
        ("{ fill(1,99999999999999) }", "above the largest frame"),
        ("{ fill(1,-4) }", "count -4 is below 1"),
        ("{ fill(1,,2) }", "an argument is missing"),
        ("{ fill(da=1) }", "takes plain numbers"),
        ("{ c16(1<<64) }", "shift count 64"),
        ("{ c16(1%0) }", "remainder by zero"),
        ("{ c16(+1) }", "no unary plus"),
        ("{ c16(1 <3) }", "shifts are written <<"),
        ("{ c16(" + "(" * 500 + "1" + ")" * 500 + ") }", "levels of parentheses"),
        ("{ dinc(5, 2) }", "minimum 5 is above maximum 2"),
        ("{ csumudp(0,0) }", "both offsets are 0"),
        ("{ fill(0,20), csumudp(14,34) }", "but the packet has 22 bytes"),
        ("{ csum(0,20) }", "did you mean csumip?"),
        ("{ eth(da=1:2:3:4:5:6) }", "typed headers such as eth()"),
        ("cpu(0){1}", "a selector ends with"),
        ("cpu(0):", "found the end of the text"),
        ("cpu(0):,,{1}", "expected a packet"),
        ("{ dinc(0,10,-1) }", "step -1 is negative"),
        ("cpu(foo): {1}", "a selector is written"),
        ("1, 2", "expected a packet"),
        ("{ 1", "packet is not closed"),
        ("{ { 1 } }", "packet is not closed"),
        ("\x00", "byte 0x00 does not belong"),
    ],
)  # fmt: skip
def test_mistake_is_named(text: str, message: str) -> None:
    assert message in messages(text)


@pytest.mark.parametrize(
    ("text", "bytes_", "message"),
    [
        ("{ 256 }", "00", "256 does not fit in a byte"),
        ("{ 1, 2, 300, 4 }", "01022c04", "300 does not fit in a byte"),
        ("{ c16(0x12345) }", "2345", "does not fit in 2 bytes"),
        ("{ c8(-129) }", "7f", "does not fit in a byte"),
        ("{ fill(0x1ff, 1) }", "ff", "value 511 does not fit"),
        ("{ dinc(0, 0x1ff) }", "01", "maximum 511 does not fit"),
        ("{ seqinc(0x1fe, 1) }", "fe", "start 510"),
        ("{ c64(0xffffffffffffffffff) }", "f" * 16, "does not fit in 64 bits"),
        ("{ c16(2+3*4) }", "0014", "read as (2 + 3) * 4 = 20; C reads 2 + (3 * 4) = 14"),
        ("{ ddec(255,0) }", "fe", "bounds swapped"),
        ("{ c8(18446744073709551615) }", "ff", "does not fit in a byte"),
        ("{ c32((0xffffffffffffffff)) }", "ffffffff", "does not fit in 4 bytes"),
        ("{ fill(0xffffffffffffff80,1) }", "80", "does not fit in a byte"),
        ('{ "a\\x4" }', "615c7834", "stays as text"),
        ("{ csumip(8,12),1,2,3 }", "ffff010203", "nothing is summed"),
    ],
)
def test_warning_and_strict(text: str, bytes_: str, message: str) -> None:
    found = compiled(text)
    assert reference.frame(found.program, 0, 0).hex() == bytes_
    assert f"warning: {message}" in found.diagnostics.render() or message in found.diagnostics.render()
    assert message in messages(text, strict=True)


@pytest.mark.parametrize(
    "text", ["{ c16(2*3+4) }", "{ c16(1+2-3) }", "{ c16((2+3)*4) }", "{ c16(0*1+0) }", "{ c16(-1), c8(-128), c8(255) }"]
)
def test_nothing_is_said_where_both_readings_agree(text: str) -> None:
    assert compiled(text, strict=True).diagnostics.render() == ""


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("{1\n2}", "0102"),
        ("{ fill ( 1 , 2 ) }", "0101"),
        ("{ c16 (\n1 # one\n+ 2 ) }", "0003"),
        ("{ 1 // two\n 3 ; four\n, /* five */ 6 }", "010306"),
        ("\xef\xbb\xbf{ 1 }", "01"),
        ("{ XFF, B101, x7, b1, b, x }", "ff0507016278"),
        ("{ c64(18446744073709551615) }", "f" * 16),
        ("{ fill(1, 2*2), fill(0, 8/4) }", "010101010000"),
        ('{ "A\\x41\\x00z" }', "4141007a"),
        ("{/*c*/}", ""),
        ("cpu(0):,{1}", "01"),
        ("{ rnd(0x0) }", None),
        ("{ 1, drnd(0), 2 }", "0102"),
        ("{ csumip(1,1) }", "ffff"),
        ("{ 1,4,csumip(1,1) }", "0104fbff"),
    ],
)  # fmt: skip
def test_superset(text: str, bytes_: str | None) -> None:
    data = text.encode("latin-1")
    if bytes_ is None:
        messages(data)
    else:
        assert frames(data, 1) == [bytes_]


def test_every_alias_of_every_function() -> None:
    for name in ("csumip", "csum16", "csumip4", "csumicmp", "csumicmp4", "CsumIP"):
        assert frames(f"{{ 1,2,3,4,{name}(0,3) }}", 1) == ["01020304fbf9"]
    for bits in (8, 16, 32, 64):
        assert frames(f"{{ c{bits}(1) }}", 1) == frames(f"{{ CONST{bits}(1) }}", 1) == [f"{1:0{bits // 4}x}"]


def test_random_values_depend_on_seed_packet_and_field() -> None:
    text = "{ drnd(4), drnd(4), rnd(4) } { drnd(4), drnd(4), rnd(4) }"
    one, two = frames(text, 40, seed=1), frames(text, 40, seed=2)
    assert one == frames(text, 40, seed=1)
    words = [f[i : i + 8] for run in (one, two) for f in run for i in (0, 8)]
    assert len(set(words)) == len(words)
    assert len({f[16:] for f in one}) == 2  # rnd is fixed, a value for each packet


def test_random_bits_are_even() -> None:
    """Every bit of 10,000 values is set 48 to 52 % of the time (fixed seed), for several widths."""
    for width in (1, 2, 6, 16):
        values = [int(f, 16) for f in frames(f"{{ drnd({width}) }}", 10_000)]
        for bit in range(8 * width):
            assert 4800 <= sum(v >> bit & 1 for v in values) <= 5200


def test_counters_cover_their_range_whatever_the_workers() -> None:
    for workers in (1, 2, 3, 4):
        found = frames("{ dinc(1,254) }", 508, workers=workers)
        assert sorted(found) == sorted([f"{i:02x}" for i in range(1, 255)] * 2)


def test_selectors_and_groups() -> None:
    text = "cpu(0): {1} {2}"
    program = compiled(text).program
    schedule = make_schedule(program, workers=2, count=5)
    sent = [[pick(program, *s)[0] for s in worker_slots(schedule, w, 9)] for w in (0, 1)]
    assert sent == [[0, 1, 0, 0], [1]]  # shares 3 and 2; worker 0 takes turns between its groups
    assert schedule.groups[1].base == 3
    lone = make_schedule(compiled("cpu(1): {1} {2} {3}").program, workers=1, count=4)
    assert lone.dropped == (0,)
    assert frames("{1} {2}", 5, workers=2) == ["01", "01", "01", "02", "02"]


def test_65537_packets_in_order() -> None:
    text = "".join(f"{{ c32({i}) }}\n" for i in range(65_537))
    found = frames(text, 65_537)
    assert found == [f"{i:08x}" for i in range(65_537)]
