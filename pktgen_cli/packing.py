"""The packed form of a Program: what the compiled half owns.

Records of fixed sizes in native byte order, side by side in a few byte strings; a test
holds their layouts equal to the compiled structs.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from pktgen_cli.program import DRAWN, MASK64, Checksum, Op, OpCode, Program, field_key

PACKET_RECORD = struct.Struct("=QIIIIIIII")
OP_RECORD = struct.Struct("=IiIIQQQQQII")
CHECKSUM_RECORD = struct.Struct("=iIIIQIIIIII")
TERM_RECORD = struct.Struct("=iII")

FLAG_VARIES = 1
CHECKSUM_ZERO_IS_FFFF = 1
CHECKSUM_VARIES = 2
CHECKSUM_PSEUDO = 4
NO_LIMIT = 2**32 - 1
DATA_ALIGN = 64


@dataclass(frozen=True, slots=True)
class Packed:
    """A Program as arrays of records (see the Struct objects above), ready for a worker."""

    packets: bytes
    ops: bytes
    checksums: bytes
    terms: bytes
    tables: bytes
    data: bytes

    def digest(self) -> str:
        """SHA-256 of all records: equal digests mean equal frames."""
        sha = hashlib.sha256()
        for part in (self.packets, self.ops, self.checksums, self.terms, self.tables, self.data):
            sha.update(len(part).to_bytes(8, "little") + part)
        return sha.hexdigest()


def pack(program: Program) -> Packed:
    """Flatten a Program; keys of random fields are derived from the seed here."""
    table_at = [0]
    for table in program.tables:
        table_at.append(table_at[-1] + len(table))
    packets, ops, checksums, terms, data = bytearray(), bytearray(), bytearray(), bytearray(), bytearray()
    for number, packet in enumerate(program.packets):
        live = packet.live_checksums
        packets += PACKET_RECORD.pack(
            len(data), packet.max_length, packet.min_length,
            len(ops) // OP_RECORD.size, len(packet.ops),
            len(checksums) // CHECKSUM_RECORD.size, len(live),
            FLAG_VARIES if packet.varies else 0, 0,
        )  # fmt: skip
        for op in packet.ops:
            ops += _pack_op(op, program.seed, number, table_at)
        for checksum in live:
            checksums += _pack_checksum(checksum, packet.varies, len(terms) // TERM_RECORD.size)
            for term in checksum.terms:
                terms += TERM_RECORD.pack(term.offset, term.width, term.odd)
        data += packet.template
        data += bytes(-len(data) % DATA_ALIGN)
    tables = b"".join(struct.pack(f"={len(table)}Q", *table) for table in program.tables)
    return Packed(bytes(packets), bytes(ops), bytes(checksums), bytes(terms), tables, bytes(data))


def _pack_op(op: Op, seed: int, packet: int, table_at: list[int]) -> bytes:
    step, start, high = op.step & MASK64, op.start & MASK64, op.high & MASK64
    first = count = 0
    if op.code in DRAWN:
        start = field_key(seed, packet, op.start)
    if op.code in (OpCode.COUNTER, OpCode.RANDOM):
        high = op.range
    if op.code == OpCode.COUNTER and high:
        step, start = step % high, start % high
    if op.table >= 0:
        first, count = table_at[op.table], table_at[op.table + 1] - table_at[op.table]
        if op.code == OpCode.TABLE:
            step, start = step % count, start % count
    return OP_RECORD.pack(
        op.code, op.offset, op.width, op.shift, op.low, high, step, start, op.mask, first, count
    )


def _pack_checksum(checksum: Checksum, varies: bool, first_term: int) -> bytes:
    flags = CHECKSUM_ZERO_IS_FFFF if checksum.zero_is_ffff else 0
    flags |= CHECKSUM_VARIES if varies else 0
    flags |= CHECKSUM_PSEUDO if checksum.protocol else 0
    limit = NO_LIMIT if checksum.last is None else min(checksum.last + 1, NO_LIMIT)
    return CHECKSUM_RECORD.pack(
        checksum.offset, flags, first_term, len(checksum.terms), checksum.base,
        checksum.first, checksum.tail_at, limit, checksum.tail[0], checksum.tail[1], 0,
    )  # fmt: skip
