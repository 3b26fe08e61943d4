"""Both executors make the same frames, for random programs and any occurrence up to 2^64 - 1."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pktgen_cli import _fastpath, packing, reference, schedule, stats
from pktgen_cli.assembly import assemble, byte_sum, checksum_order, fold
from pktgen_cli.errors import ProgramError
from pktgen_cli.packing import pack
from pktgen_cli.program import (
    MASK64,
    Checksum,
    Op,
    OpCode,
    Packet,
    Program,
    listing,
    random_bytes,
    random_word,
)

WORDS = st.integers(0, MASK64)
SLOTS = st.one_of(st.integers(0, 300), st.integers(0, 2**63), st.sampled_from([2**32 - 1, 2**32, 2**63, MASK64]))
EDGES = st.one_of(WORDS, st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63, MASK64]))


@st.composite
def value_ops(draw: st.DrawFn, shortest: int, *, from_end: int = 0, tables: int = 0) -> Op:
    """An op inside a frame of `shortest` bytes; the last `from_end` of them are counted from the end."""
    codes = [c for c in OpCode if tables or c not in (OpCode.TABLE, OpCode.CHOICE)]
    code = draw(st.sampled_from(codes))
    end = from_end and draw(st.booleans())
    space = from_end if end else shortest - from_end
    width = draw(st.integers(1, min(space, 20 if code == OpCode.BYTES else 8)))
    offset = draw(st.integers(0, space - width))
    low, high = sorted((draw(EDGES), draw(EDGES)))
    mask = draw(st.one_of(st.just(MASK64), WORDS))
    return Op(
        code, offset - from_end if end else offset, width, low, max(high, 1), draw(EDGES), draw(EDGES), mask,
        draw(st.integers(0, 63)), draw(st.integers(0, tables - 1)) if tables else -1,
    )  # fmt: skip


@st.composite
def length_ops(draw: st.DrawFn, shortest: int, longest: int) -> Op:
    if draw(st.booleans()):
        step, start = draw(EDGES), draw(EDGES)
        return Op(OpCode.COUNTER, width=0, low=shortest, high=longest, step=step, start=start)
    return Op(OpCode.RANDOM, width=0, low=shortest, high=longest, start=99)


@st.composite
def checksums(draw: st.DrawFn, shortest: int, from_end: int) -> Checksum:
    offset = draw(st.integers(0, shortest - from_end - 2))
    first = draw(st.integers(0, shortest - from_end))
    if draw(st.booleans()):
        last = None if from_end else draw(st.one_of(st.none(), st.integers(first, 2 * shortest)))
        return Checksum(offset, first, last)
    protocol = draw(st.sampled_from([6, 17, 58]))
    addresses = draw(st.sampled_from([8, 32]))
    if addresses > shortest - from_end:
        return Checksum(offset, first)
    at = draw(st.integers(0, shortest - from_end - addresses))
    return Checksum(offset, first, None, protocol, at, addresses)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    tables = tuple(tuple(draw(st.lists(WORDS, min_size=1, max_size=5))) for _ in range(draw(st.integers(0, 2))))
    packets = []
    for _ in range(draw(st.integers(1, 3))):
        shortest = draw(st.integers(4, 60))
        template = draw(st.binary(min_size=shortest, max_size=shortest))
        ops: list[Op] = []
        from_end = 0
        if draw(st.booleans()):
            longest = shortest + draw(st.integers(1, 40))
            word = draw(st.binary(min_size=2, max_size=2))
            template += (word * 20)[: longest - shortest]
            from_end = draw(st.integers(0, shortest - 2))
            ops.append(draw(length_ops(shortest, longest)))
        ops += draw(st.lists(value_ops(shortest, from_end=from_end, tables=len(tables)), max_size=6))
        sums = draw(st.lists(checksums(shortest, from_end), max_size=4))
        taken = {i for op in ops if op.offset >= 0 for i in range(op.offset, op.offset + op.width)}
        apart = []
        for checksum in sums:
            field = {checksum.offset, checksum.offset + 1}
            if not field & taken:
                apart.append(checksum)
                taken |= field
        packets.append(assemble(template, ops, apart, tables=tables))
    return Program(tuple(packets), draw(WORDS), tables=tables)


@given(programs(), st.lists(SLOTS, min_size=1, max_size=8))
def test_executors_agree(made: Program, occurrences: list[int]) -> None:
    fast = _fastpath.Program(pack(made))
    for number in range(len(made.packets)):
        for occurrence in occurrences:
            assert fast.frame(number, occurrence) == reference.frame(made, number, occurrence)


@given(programs(), st.integers(1, 5), st.one_of(st.none(), st.integers(0, 2**63 - 1)), st.booleans(), st.data())
def test_the_same_slot_has_the_same_bytes_for_any_worker(
    made: Program, workers: int, count: int | None, rand: bool, data: st.DataObject
) -> None:
    made = replace(made, random_order=rand)
    slot = data.draw(st.integers(0, 2**63 - 1 if count is None else max(count - 1, 0)))
    frames = set()
    for number in (1, workers):
        plan = schedule.make_schedule(made, workers=number, count=count)
        found = schedule.locate(plan, slot)
        if found is None:
            assert count == 0
            return
        frames.add(reference.frame(made, *schedule.pick(made, *found)))
    assert len(frames) == 1


@given(st.binary(max_size=70), st.booleans())
def test_byte_sum_is_the_plain_definition(data: bytes, odd: bool) -> None:
    total = 0
    for i, byte in enumerate(data):
        total += byte << (0 if (i + odd) % 2 else 8)
    assert byte_sum(data, odd) == total
    assert fold(total) % 0xFFFF == total % 0xFFFF


def test_layouts_and_codes_are_those_of_the_compiled_half() -> None:
    assert {code.name: int(code) for code in OpCode} == _fastpath.OP_CODES
    for name, record in (
        ("packet", packing.PACKET_RECORD), ("op", packing.OP_RECORD), ("checksum", packing.CHECKSUM_RECORD),
        ("term", packing.TERM_RECORD), ("group", schedule.GROUP_RECORD), ("turn", schedule.TURN_RECORD),
    ):  # fmt: skip
        assert _fastpath.LAYOUT[name] == record.size
    assert _fastpath.LAYOUT["counters_words"] == stats.COUNTERS_WORDS
    assert _fastpath.LAYOUT["errno_max"] == stats.ERRNO_MAX == stats.COUNTERS_WORDS - stats.REFUSED_AT
    ours = {r.name: int(r) for r in stats.Reason if r.name not in ("RUNNING", "KILLED")}
    assert ours == _fastpath.REASONS


def test_known_random_values() -> None:
    """SplitMix64's first outputs for seed 0: the generator is the published one."""
    assert [random_word(0, i) for i in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert random_bytes(0, 0, 11)[:8] == (0xE220A8397B1DCDAF).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("low", "high", "step", "start", "wanted"),
    [
        (0, 3, 1, 1, [1, 2, 3, 0, 1]),
        (1, 10, 4, 0, [1, 5, 9, 3, 7]),
        (250, 255, 3, 3, [253, 250, 253, 250, 253]),
        (5, 5, 0, 0, [5, 5, 5, 5, 5]),
        (0, MASK64, 2**63, 2**63 + 5, [2**63 + 5, 5, 2**63 + 5, 5, 2**63 + 5]),
    ],
)
def test_counter_definition(low: int, high: int, step: int, start: int, wanted: list[int]) -> None:
    op = Op(OpCode.COUNTER, 0, 8, low, high, step, start)
    made = Program((Packet(bytes(8), (op,)),))
    assert [int.from_bytes(reference.frame(made, 0, m), "big") for m in range(5)] == wanted


def test_wide_counter_carries_into_its_high_half() -> None:
    start = 2**64 - 2
    ops = (Op(OpCode.CARRY, 0, 8, low=7, step=1, start=start), Op(OpCode.COUNTER, 8, 8, 0, MASK64, 1, start))
    made = Program((Packet(bytes(16), ops),))
    fast = _fastpath.Program(pack(made))
    for m in (0, 1, 2, 3, 2**63):
        assert int.from_bytes(fast.frame(0, m), "big") == (7 << 64) + start + m


def test_checksums_run_inner_before_outer_and_circles_in_order() -> None:
    outer, inner = Checksum(0, 2, 20), Checksum(10, 12, 20)
    assert checksum_order([outer, inner], 30) == [1, 0]
    one, two, three = Checksum(4, 0, 9), Checksum(0, 4, 5), Checksum(8, 4, 5)
    assert checksum_order([one, two], 30) == [0, 1]  # each covers the other
    assert checksum_order([three, one, two], 30) == [0, 1, 2]  # a circle: each covers, or is covered by, another


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Packet(bytes(4), (Op(OpCode.COUNTER, 3, 2),)),
        lambda: Packet(bytes(4), (Op(OpCode.COUNTER, -5, 2),)),
        lambda: Packet(bytes(4), (Op(OpCode.COUNTER, 0, 9),)),
        lambda: Packet(bytes(4), (Op(OpCode.STRIDE, 0, 1, high=0),)),
        lambda: Packet(bytes(4), (), (Checksum(3, 0, 1),)),
        lambda: assemble(bytes(9), (), [Checksum(3, 0), Checksum(4, 0)]),
        lambda: assemble(bytes(9), (Op(OpCode.COUNTER, 4, 1),), [Checksum(3, 0)]),
        lambda: Packet(bytes(6), min_length=4),
        lambda: Packet(b"abcdef", (Op(OpCode.COUNTER, width=0, low=2, high=6),), min_length=2),
        lambda: Program((Packet(bytes(4), (Op(OpCode.TABLE, 0, 1, table=0),)),)),
        lambda: Packet(bytes(9), (
            Op(OpCode.COUNTER, width=0, low=4, high=9), Op(OpCode.COUNTER, 0, 3), Op(OpCode.COUNTER, -2, 2),
        ), min_length=4),
    ],
)  # fmt: skip
def test_programs_that_nothing_could_run_are_refused(bad: object) -> None:
    with pytest.raises(ProgramError):
        bad()  # type: ignore[operator]


@given(programs(), st.data())
def test_damaged_records_are_refused_or_harmless(made: Program, data: st.DataObject) -> None:
    """Any change of one record byte gives ValueError or a program whose frames stay inside their memory."""
    packed = pack(made)
    part = data.draw(st.sampled_from(["packets", "ops", "checksums", "terms"]))
    raw = bytearray(getattr(packed, part))
    if not raw:
        return
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        fast = _fastpath.Program(replace(packed, **{part: bytes(raw)}))
    except ValueError:
        return
    for number in range(fast.packets):
        assert len(fast.frame(number, 3)) <= fast.max_length


@pytest.mark.parametrize(
    ("part", "record", "field", "value"),
    [
        ("packets", packing.PACKET_RECORD, 0, 2**64 - 32),
        ("packets", packing.PACKET_RECORD, 1, 2**32 - 1),
        ("packets", packing.PACKET_RECORD, 3, 2**32 - 1),
        ("packets", packing.PACKET_RECORD, 5, 2**32 - 1),
        ("ops", packing.OP_RECORD, 0, 9),
        ("ops", packing.OP_RECORD, 1, -(2**31)),
        ("ops", packing.OP_RECORD, 2, 2**32 - 1),
        ("ops", packing.OP_RECORD, 9, 2**32 - 1),
        ("checksums", packing.CHECKSUM_RECORD, 0, 2**31 - 1),
        ("checksums", packing.CHECKSUM_RECORD, 2, 2**32 - 1),
        ("terms", packing.TERM_RECORD, 1, 2**32 - 1),
    ],
)
def test_damaged_fields_are_refused(part: str, record: struct.Struct, field: int, value: int) -> None:
    packed = pack(Program((assemble(bytes(8), [Op(OpCode.COUNTER, 0, 1)], [Checksum(4, 0, 3)]),)))
    fields = list(record.unpack(getattr(packed, part)))
    fields[field] = value
    with pytest.raises(ValueError, match="damaged"):
        _fastpath.Program(replace(packed, **{part: record.pack(*fields)}))


def test_listing_names_every_op() -> None:
    ops = (
        Op(OpCode.RANDOM, width=0, low=20, high=24, start=1),
        Op(OpCode.COUNTER, 0, 8, 1, 2**40 + 1, 3, 0),
        Op(OpCode.STRIDE, 8, 2, 5, 3, 7),
        Op(OpCode.CARRY, 10, 1),
        Op(OpCode.BYTES, 11, 3, start=2),
        Op(OpCode.CHOICE, 14, 1, table=0),
        Op(OpCode.LENGTH, 15, 2, start=MASK64, mask=0xFFF0, shift=4),
        Op(OpCode.TABLE, -1, 1, table=0),
    )
    packet = assemble(bytes(24), ops, [Checksum(17, 0)], tables=((1, 2),))
    text = "\n".join(listing(Program((packet,), tables=((1, 2),))))
    for words in (
        "20..24 bytes, dynamic", "slow", "3 steps of 7", "high half", "random bytes (field 2)", "at random",
        "frame length - 1, bits 0xfff0 shifted 4", "end-1", "in turn", "checksum 0..end",
    ):  # fmt: skip
        assert words in text
