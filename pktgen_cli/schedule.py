"""Which packet each slot sends, and which worker sends it (semantics section 1).

A run is a set of slots. Packets with equal sets of workers form a group; each group is
a slot space of its own, shared by its workers in strides, and its packets take turns
in it. Everything is a closed form of the slot, so any worker, and `show`, can start
anywhere. Finite runs use slots 0..n-1, shared over groups in proportion to their
number of packets; group g begins at the sum of the shares before it. Endless runs give
each group an equal part of the 63-bit slot numbers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

from pktgen_cli.program import MASK64, ORDER_PACKET, Program, field_key, random_word

ENDLESS = MASK64
"""`end` of a group that has no last slot."""


@dataclass(frozen=True, slots=True)
class Group:
    """A slot space.

    `turns` holds (packet, rank) for each position of a cycle, `weights` the share of
    each turn's packet; `workers` are the numbers of those that send it, in order;
    `count` is its share of the run or None; `share` its part of the aggregate rate.
    """

    base: int
    workers: tuple[int, ...]
    turns: tuple[tuple[int, int], ...]
    weights: tuple[int, ...]
    count: int | None
    share: Fraction


@dataclass(frozen=True, slots=True)
class Schedule:
    """All groups of a run of `workers` workers, and the packets that no worker sends."""

    groups: tuple[Group, ...]
    workers: int
    dropped: tuple[int, ...]

    def slots(self, worker: int) -> int | None:
        """How many slots that worker sends; None for endless."""
        total = 0
        for group in self.groups:
            if worker in group.workers:
                if group.count is None:
                    return None
                rank = group.workers.index(worker)
                total += max(0, -(-(group.count - rank) // len(group.workers)))
        return total


def make_schedule(program: Program, *, workers: int, count: int | None) -> Schedule:
    """Cut selectors to the workers that run, form groups, share `count` (None: endless)."""
    members: dict[tuple[int, ...], list[int]] = {}
    dropped = []
    everyone = tuple(range(workers))
    for number, packet in enumerate(program.packets):
        first, last = packet.workers or (0, workers)
        chosen = everyone[first : last + 1]
        if chosen:
            members.setdefault(chosen, []).append(number)
        else:
            dropped.append(number)
    total = sum(len(packets) for packets in members.values())
    counts: list[int | None] = [None] * len(members)
    if count is not None and total:
        shares = [count * len(packets) // total for packets in members.values()]
        for i in range(count - sum(shares)):
            shares[i] += 1
        counts = list(shares)
    if count is not None:
        bases = [0, *accumulate(c or 0 for c in counts)]
    else:
        space = 2**63 // max(1, len(members))
        bases = [i * space for i in range(len(members))]
    groups = []
    for (chosen, packets), base, share_count in zip(members.items(), bases, counts):
        turns = tuple((p, rank) for p in packets for rank in range(program.packets[p].weight))
        weights = tuple(program.packets[p].weight for p, _ in turns)
        groups.append(Group(base, chosen, turns, weights, share_count, Fraction(len(packets), total)))
    return Schedule(tuple(groups), workers, tuple(dropped))


def pick(program: Program, group: Group, slot: int) -> tuple[int, int]:
    """(packet, occurrence) of a slot of that group, counted inside the group."""
    if program.random_order:
        key = field_key(program.seed, ORDER_PACKET, 0)
        packet, _ = group.turns[random_word(key, group.base + slot) % len(group.turns)]
        return packet, group.base + slot
    position = slot % len(group.turns)
    packet, rank = group.turns[position]
    return packet, (slot // len(group.turns)) * group.weights[position] + rank


def locate(schedule: Schedule, slot: int) -> tuple[Group, int] | None:
    """The group that holds a global slot, and the slot inside it; None when the run has no such slot."""
    for group in reversed(schedule.groups):
        if slot >= group.base:
            inside = slot - group.base
            if group.count is None or inside < group.count:
                return group, inside
            return None
    return None


def worker_slots(schedule: Schedule, worker: int, limit: int) -> list[tuple[Group, int]]:
    """The first `limit` slots of a worker in sending order: its groups a packet at a time, in file order."""
    mine = [group for group in schedule.groups if worker in group.workers]
    following = [group.workers.index(worker) for group in mine]
    sent: list[tuple[Group, int]] = []
    while len(sent) < limit:
        before = len(sent)
        for i, group in enumerate(mine):
            if len(sent) < limit and following[i] < (ENDLESS if group.count is None else group.count):
                sent.append((group, following[i]))
                following[i] += len(group.workers)
        if len(sent) == before:
            break
    return sent


GROUP_RECORD = struct.Struct("=QQQQQQQQII")
TURN_RECORD = struct.Struct("=III")


def pack_worker(
    program: Program, schedule: Schedule, worker: int, period: Fraction | None
) -> tuple[bytes, bytes]:
    """(groups, turns) of one worker as records for the compiled half.

    `period` is the aggregate time between slots in nanoseconds, None for no pacing. A
    group's own period is longer by its share, and group g begins g periods later, so that
    groups do not send together.

    With `worker` -1 the records are those of the single writer of a capture file, which sends
    every slot of every group: ascending, slot k due at k periods (1 ns without a rate). Only
    in an endless run, where the first group would never end, do groups take turns there too.
    """
    groups, turns = bytearray(), bytearray()
    for number, group in enumerate(schedule.groups):
        if worker >= 0 and worker not in group.workers:
            continue
        first, stride, origin, phase = 0, 1, 0, 0
        if worker >= 0:
            first, stride = group.workers.index(worker), len(group.workers)
        if worker < 0 and group.count is not None:
            num, den = pace_fraction(period or Fraction(1))
            origin = group.base
        elif worker < 0 or period is not None:
            num, den = pace_fraction((period or Fraction(1)) / group.share)
            phase = due(period or Fraction(1), number)
        else:
            num, den = 0, 1
        groups += GROUP_RECORD.pack(
            group.base, first, ENDLESS if group.count is None else group.count, stride, num, den,
            origin, phase, len(turns) // TURN_RECORD.size, len(group.turns),
        )  # fmt: skip
        for (packet, rank), weight in zip(group.turns, group.weights):
            turns += TURN_RECORD.pack(packet, rank, weight)
    return bytes(groups), bytes(turns)


def pace_fraction(period: Fraction) -> tuple[int, int]:
    """Nanoseconds a slot as a ratio of two 63-bit integers, exact where it fits."""
    bound = 2**62
    if period >= bound:
        return bound, 1
    if max(period.numerator, period.denominator) > bound:
        period = period.limit_denominator(bound // (int(period) + 1))
    return period.numerator, period.denominator


def due(period: Fraction, slot: int) -> int:
    """Nanoseconds after the start at which a slot is due: floor(slot * period), no drift."""
    return slot * period.numerator // period.denominator
