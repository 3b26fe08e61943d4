"""Executes a Program in plain Python, slowly and obviously: the oracle of every engine.

Nothing here uses what assembly prepared for speed: checksums are summed over the whole
frame each time, in the order that the packet gives, all their fields zeroed first.
"""

from __future__ import annotations

from pktgen_cli.assembly import byte_sum, store_value
from pktgen_cli.program import MASK64, Checksum, Op, OpCode, Program, field_key, random_bytes, random_word


def value_of(op: Op, program: Program, packet: int, occurrence: int, length: int) -> int:
    """The 64-bit value of one op for that occurrence of its packet."""
    m = occurrence & MASK64
    if op.code == OpCode.COUNTER:
        return (op.low + (op.start + m * op.step) % (op.range or 2**64)) & MASK64
    if op.code == OpCode.STRIDE:
        return (op.low + (m % op.high) * op.step) & MASK64
    if op.code == OpCode.CARRY:
        return (op.low + ((op.start + m * op.step) >> 64)) & MASK64
    if op.code == OpCode.TABLE:
        table = program.tables[op.table]
        return table[(op.start + m * op.step) % len(table)]
    if op.code == OpCode.LENGTH:
        return (length + op.start) & MASK64
    u = random_word(field_key(program.seed, packet, op.start), m)
    if op.code == OpCode.CHOICE:
        table = program.tables[op.table]
        return table[u % len(table)]
    assert op.code == OpCode.RANDOM
    return (op.low + u % (op.range or 2**64)) & MASK64


def frame(program: Program, packet: int, occurrence: int) -> bytes:
    """The bytes of that occurrence of that packet."""
    description = program.packets[packet]
    length = len(description.template)
    ops = description.ops
    if ops and ops[0].sets_length:
        length = value_of(ops[0], program, packet, occurrence, 0)
        ops = ops[1:]
    data = bytearray(description.template[:length])
    for op in ops:
        at = op.offset if op.offset >= 0 else length + op.offset
        if op.code == OpCode.BYTES:
            key = field_key(program.seed, packet, op.start)
            data[at : at + op.width] = random_bytes(key, occurrence, op.width)
            continue
        value = value_of(op, program, packet, occurrence, length)
        old = int.from_bytes(data[at : at + op.width], "big")
        new = (old & ~op.mask) | ((value << op.shift) & op.mask)
        data[at : at + op.width] = (new & (2 ** (8 * op.width) - 1)).to_bytes(op.width, "big")
    for checksum in description.checksums:
        data[checksum.offset : checksum.offset + 2] = b"\0\0"
    for checksum in description.checksums:
        total = _sum(checksum, data)
        data[checksum.offset : checksum.offset + 2] = store_value(total, checksum.zero_is_ffff).to_bytes(2, "big")
    return bytes(data)


def _sum(checksum: Checksum, data: bytearray) -> int:
    last = len(data) - 1 if checksum.last is None else min(checksum.last, len(data) - 1)
    covered = bytearray(data)
    covered[checksum.offset : checksum.offset + 2] = b"\0\0"
    total = byte_sum(bytes(covered[checksum.first : last + 1]))
    if checksum.protocol:
        addresses = bytes(covered[checksum.addresses_at : checksum.addresses_at + checksum.addresses])
        total += byte_sum(addresses) + checksum.protocol + len(data) - checksum.first
    return total
