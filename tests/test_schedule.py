"""Who sends which slot, and when: closed forms, without a clock (semantics section 1)."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pktgen_cli import _fastpath
from pktgen_cli.program import Packet, Program
from pktgen_cli.schedule import due, locate, make_schedule, pace_fraction, pick, worker_slots

PERIODS = st.one_of(
    st.fractions(min_value=Fraction(1, 1000), max_value=10**6, max_denominator=10**9),
    st.fractions(min_value=Fraction(1, 1000), max_value=10**11, max_denominator=10**9),
)


@st.composite
def descriptions(draw: st.DrawFn) -> Program:
    """Packets with selectors and weights."""
    packets = []
    for _ in range(draw(st.integers(1, 5))):
        workers = draw(st.one_of(st.none(), st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted).map(tuple)))
        packets.append(Packet(b"", workers=workers, weight=draw(st.integers(1, 4))))  # type: ignore[arg-type]
    return Program(tuple(packets))


@given(descriptions(), st.integers(1, 5), st.integers(0, 60))
def test_every_slot_is_sent_once(program: Program, workers: int, count: int) -> None:
    plan = make_schedule(program, workers=workers, count=count)
    sent = []
    for worker in range(workers):
        slots = worker_slots(plan, worker, 10**6)
        assert len(slots) == plan.slots(worker)
        for group, slot in slots:
            assert worker in group.workers
            assert locate(plan, group.base + slot) == (group, slot)
            chosen = program.packets[pick(program, group, slot)[0]].workers
            assert chosen is None or chosen[0] <= worker <= chosen[1]
            sent.append(group.base + slot)
    wanted = count if len(plan.dropped) < len(program.packets) else 0
    assert sorted(sent) == list(range(wanted))


@given(descriptions(), st.integers(0, 200))
def test_occurrences_count_up_without_holes(program: Program, count: int) -> None:
    plan = make_schedule(program, workers=1, count=count)
    seen: dict[int, int] = {}
    for group, slot in worker_slots(plan, 0, count):
        packet, occurrence = pick(program, group, slot)
        assert occurrence == seen.get(packet, 0)
        seen[packet] = occurrence + 1


def test_weights_share_the_slots() -> None:
    program = Program((Packet(b"", weight=3), Packet(b"", weight=1)))
    plan = make_schedule(program, workers=1, count=9)
    assert [pick(program, g, s) for g, s in worker_slots(plan, 0, 9)] == [
        (0, 0), (0, 1), (0, 2), (1, 0), (0, 3), (0, 4), (0, 5), (1, 1), (0, 6),
    ]  # fmt: skip


@pytest.mark.parametrize(("count", "workers", "shares"), [
    (1, 2, [1, 0]), (7, 3, [3, 2, 2]), (2, 8, [1, 1, 0, 0, 0, 0, 0, 0]), (10**12, 2, [5 * 10**11] * 2), (0, 2, [0, 0]),
])  # fmt: skip
def test_shares_are_exact(count: int, workers: int, shares: list[int]) -> None:
    plan = make_schedule(Program((Packet(b""),)), workers=workers, count=count)
    assert [plan.slots(w) for w in range(workers)] == shares


@given(descriptions(), st.integers(1, 4))
def test_endless_groups_do_not_meet(program: Program, workers: int) -> None:
    plan = make_schedule(program, workers=workers, count=None)
    for group in plan.groups:
        assert plan.slots(group.workers[0]) is None
        assert locate(plan, group.base + 10**12) == (group, 10**12)


@given(PERIODS, st.integers(1, 64), st.integers(0, 63), st.integers(0, 10**12))
def test_due_times_are_the_closed_form(period: Fraction, workers: int, worker: int, first: int) -> None:
    """The stepped due times equal floor(slot * period) exactly, up to slot 10^12, for every stride."""
    num, den = pace_fraction(period)
    slot = first // workers * workers + worker % workers
    assume((slot + 50 * workers) * period < 2**61)  # 73 years; what happens later is another test
    walked = _fastpath.pace_walk(num, den, slot, workers, 50)
    exact = Fraction(num, den)
    assert walked == [due(exact, slot + i * workers) for i in range(50)]
    assert abs(exact - period) * 10**12 < max(1, period * Fraction(1, 10**3))


def test_no_overflow_at_the_limits() -> None:
    """Beyond 2^62 ns (146 years) due times stand still instead of wrapping round."""
    for slot in (2**32, 2**53, 2**62):
        walked = _fastpath.pace_walk(*pace_fraction(Fraction(10**9)), slot, 1, 4)
        assert walked == sorted(walked)
        assert walked[0] == min(slot * 10**9, (2**64 - 1) // 4)
    assert pace_fraction(Fraction(2**70)) == (2**62, 1)


def test_pace_fraction_keeps_exact_ratios() -> None:
    assert pace_fraction(Fraction(10**9, 3)) == (10**9, 3)
    num, den = pace_fraction(Fraction(10**25 + 1, 10**24))
    assert max(num, den) < 2**63
