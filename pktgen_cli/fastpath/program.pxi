# The packed Program and its executor. Records have the layout that packing.py packs.

cdef enum Op:
    OP_COUNTER = 1
    OP_STRIDE = 2
    OP_CARRY = 3
    OP_RANDOM = 4
    OP_BYTES = 5
    OP_TABLE = 6
    OP_CHOICE = 7
    OP_LENGTH = 8

cdef enum:
    FLAG_VARIES = 1
    CHECKSUM_ZERO_IS_FFFF = 1
    CHECKSUM_VARIES = 2
    CHECKSUM_PSEUDO = 4
    MAX_FRAME = 16 * 1024 * 1024

ctypedef struct packet_t:
    uint64_t data           # offset of the template
    uint32_t length         # of the template: the largest length
    uint32_t min_length
    uint32_t first_op
    uint32_t ops
    uint32_t first_checksum
    uint32_t checksums
    uint32_t flags
    uint32_t reserved

ctypedef struct op_t:
    uint32_t code
    int32_t offset
    uint32_t width
    uint32_t shift
    uint64_t low
    uint64_t high           # the range R for OP_COUNTER and OP_RANDOM
    uint64_t step
    uint64_t start          # the field's key for random ops
    uint64_t mask
    uint32_t first_entry
    uint32_t entries

ctypedef struct checksum_t:
    int32_t offset
    uint32_t flags
    uint32_t first_term
    uint32_t terms
    uint64_t base
    uint32_t first
    uint32_t tail_at
    uint32_t limit
    uint32_t tail_even
    uint32_t tail_odd
    uint32_t reserved

ctypedef struct term_t:
    int32_t offset
    uint32_t width
    uint32_t odd


cdef inline uint64_t mulmod(uint64_t m, uint64_t step, uint64_t start, uint64_t size) noexcept nogil:
    """(start + m * step) mod size for start, step < size; 0 stands for 2^64 (semantics section 2)."""
    cdef uint64_t total
    cdef int i
    if size & (size - 1) == 0:
        return (start + m * step) & (size - 1)
    m %= size
    if size <= <uint64_t>1 << 32:
        return (m * step + start) % size
    total = 0
    for i in range(64):  # double and add, from the top bit; no operand reaches 2^64 without notice
        total = addmod(total, total, size)
        if m >> (63 - i) & 1:
            total = addmod(total, step, size)
    return addmod(total, start, size)


cdef inline uint64_t addmod(uint64_t a, uint64_t b, uint64_t size) noexcept nogil:
    cdef uint64_t total = a + b
    if total < a or total >= size:
        total -= size
    return total


cdef inline uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil:
    """Upper 64 bits of a * b, from 32-bit halves: there is no 128-bit product in eBPF."""
    cdef uint64_t low_a = <uint32_t>a, high_a = a >> 32, low_b = <uint32_t>b, high_b = b >> 32
    cdef uint64_t middle = high_a * low_b + (low_a * low_b >> 32)
    cdef uint64_t other = low_a * high_b + <uint32_t>middle
    return high_a * high_b + (middle >> 32) + (other >> 32)


cdef inline uint64_t op_value(const op_t* op, const uint64_t* tables, uint64_t m, uint32_t length) noexcept nogil:
    cdef uint64_t u
    if op.code == OP_COUNTER:
        return op.low + mulmod(m, op.step, op.start, op.high)
    if op.code == OP_RANDOM:
        u = random_word(op.start, m)
        if op.high:
            u %= op.high
        return op.low + u
    if op.code == OP_STRIDE:
        return op.low + (m % op.high) * op.step
    if op.code == OP_CARRY:
        u = m * op.step
        return op.low + high_product(m, op.step) + (u + op.start < u)
    if op.code == OP_TABLE:
        return tables[op.first_entry + mulmod(m, op.step, op.start, op.entries)]
    if op.code == OP_CHOICE:
        return tables[op.first_entry + random_word(op.start, m) % op.entries]
    return length + op.start  # OP_LENGTH


cdef inline void store_value(uint8_t* p, const op_t* op, uint64_t value) noexcept nogil:
    cdef uint64_t old = 0
    cdef uint32_t i
    if op.shift:
        value <<= op.shift
    if op.mask != <uint64_t>-1:
        for i in range(op.width):
            old = old << 8 | p[i]
        value = (old & ~op.mask) | (value & op.mask)
    if op.width == 1:
        p[0] = <uint8_t>value
    elif op.width == 2:
        put_be16(p, <uint16_t>value)
    elif op.width == 4:
        put_be32(p, <uint32_t>value)
    elif op.width == 8:
        put_be64(p, value)
    else:
        i = op.width
        while i:
            i -= 1
            p[i] = <uint8_t>value
            value >>= 8


cdef inline void store_checksum(
    const checksum_t* checksum, const term_t* term, uint8_t* frame, const uint8_t* template, uint32_t length,
) noexcept nogil:
    cdef uint64_t total = checksum.base
    cdef uint32_t i, at, end
    cdef uint16_t value
    for i in range(checksum.terms):
        if term[i].offset >= 0:
            total += sum_bytes(frame + term[i].offset, term[i].width, term[i].odd)
        else:  # counted from the end: take the template's bytes back, which the tail has counted
            at = length + term[i].offset
            total += sum_bytes(frame + at, term[i].width, (at - checksum.first) & 1)
            total += 0xFFFF - fold(sum_bytes(template + at, term[i].width, (at - checksum.first) & 1))
    if checksum.flags & CHECKSUM_VARIES:
        end = length if length < checksum.limit else checksum.limit
        if end > checksum.tail_at:
            end -= checksum.tail_at
            total += <uint64_t>((end + 1) >> 1) * checksum.tail_even + <uint64_t>(end >> 1) * checksum.tail_odd
        if checksum.flags & CHECKSUM_PSEUDO:
            total += length - checksum.first
    value = ~fold(total)
    if value == 0 and checksum.flags & CHECKSUM_ZERO_IS_FFFF:
        value = 0xFFFF
    put_be16(frame + checksum.offset, value)


cdef class Program:
    """Owner of a packed Program's memory; immutable.

    `packed` is a `pktgen_cli.packing.Packed`. Every index and offset in it is checked here, so
    that executors need no checks; ValueError says that the records are damaged.
    """

    cdef packet_t* packet
    cdef op_t* op
    cdef checksum_t* checksum
    cdef term_t* term
    cdef uint64_t* tables
    cdef uint8_t* data
    cdef uint64_t data_size
    cdef readonly uint32_t packets
    cdef readonly uint32_t max_length
    cdef bint random_order
    cdef uint64_t order_key

    def __init__(self, packed, *, bint random_order=False, uint64_t order_key=0):
        self.random_order = random_order
        self.order_key = order_key
        ops = checksums = terms = entries = 0
        self.packet = <packet_t*>copied(packed.packets, sizeof(packet_t), &self.packets)
        self.op = <op_t*>copied(packed.ops, sizeof(op_t), NULL)
        self.checksum = <checksum_t*>copied(packed.checksums, sizeof(checksum_t), NULL)
        self.term = <term_t*>copied(packed.terms, sizeof(term_t), NULL)
        self.tables = <uint64_t*>copied(packed.tables, sizeof(uint64_t), NULL)
        self.data = <uint8_t*>copied(packed.data, 1, NULL)
        self.data_size = len(packed.data)
        ops = len(packed.ops) // sizeof(op_t)
        checksums = len(packed.checksums) // sizeof(checksum_t)
        terms = len(packed.terms) // sizeof(term_t)
        entries = len(packed.tables) // sizeof(uint64_t)
        if not self.check(ops, checksums, terms, entries):
            raise ValueError("packed program is damaged")

    def __dealloc__(self):
        free(self.packet)
        free(self.op)
        free(self.checksum)
        free(self.term)
        free(self.tables)
        free(self.data)

    cdef bint check(self, uint64_t ops, uint64_t checksums, uint64_t terms, uint64_t entries) noexcept:
        cdef packet_t* p
        cdef op_t* op
        cdef checksum_t* c
        cdef uint64_t i, j, k
        for i in range(self.packets):
            p = &self.packet[i]
            self.max_length = max(self.max_length, p.length)
            if p.length > MAX_FRAME or p.min_length > p.length:
                return False
            if p.data > self.data_size or p.length > self.data_size - p.data:
                return False
            if <uint64_t>p.first_op + p.ops > ops or <uint64_t>p.first_checksum + p.checksums > checksums:
                return False
            for j in range(p.first_op, <uint64_t>p.first_op + p.ops):
                op = &self.op[j]
                if not inside(op.offset, op.width, p.min_length):
                    return False
                if op.code < OP_COUNTER or op.code > OP_LENGTH or op.shift > 63:
                    return False
                if op.code != OP_BYTES and op.width > 8:
                    return False
                if op.code == OP_STRIDE and op.high == 0:
                    return False
                if (op.code == OP_TABLE or op.code == OP_CHOICE) and op.entries == 0:
                    return False
                if <uint64_t>op.first_entry + op.entries > entries or (op.width == 0 and j != p.first_op):
                    return False
            for j in range(p.first_checksum, <uint64_t>p.first_checksum + p.checksums):
                c = &self.checksum[j]
                if c.offset < 0 or not inside(c.offset, 2, p.min_length):
                    return False
                if <uint64_t>c.first_term + c.terms > terms:
                    return False
                for k in range(c.first_term, <uint64_t>c.first_term + c.terms):
                    if not inside(self.term[k].offset, self.term[k].width, p.min_length):
                        return False
        return True

    def frame(self, uint32_t packet, uint64_t occurrence):
        """The bytes of that occurrence of that packet."""
        if packet >= self.packets:
            raise IndexError(packet)
        cdef packet_t* p = &self.packet[packet]
        buffer = bytearray(self.data[p.data:p.data + p.length])
        cdef uint8_t* frame = buffer
        cdef uint32_t length = ops_apply(self, p, occurrence, frame)
        return bytes(buffer[:length])


cdef inline bint inside(int32_t offset, uint64_t width, uint32_t shortest) noexcept nogil:
    if offset >= 0:
        return offset + width <= shortest
    return <uint64_t>-<int64_t>offset <= shortest and <int64_t>offset + <int64_t>width <= 0


cdef void* copied(bytes records, size_t size, uint32_t* count) except NULL:
    """A copy of the records in memory aligned to the cache line."""
    cdef size_t length = len(records)
    cdef void* memory = aligned_alloc(64, (length // 64 + 1) * 64)
    if memory == NULL:
        raise MemoryError
    if length % size:
        free(memory)
        raise ValueError("packed program is damaged")
    memcpy(memory, <const char*>records, length)
    if count != NULL:
        count[0] = <uint32_t>(length // size)
    return memory


cdef inline uint32_t ops_apply(Program program, const packet_t* p, uint64_t m, uint8_t* frame) noexcept nogil:
    """Write occurrence `m` of a packet over its template in `frame`; the frame's length."""
    cdef uint32_t length = p.length
    cdef const op_t* op = program.op + p.first_op
    cdef const op_t* last = op + p.ops
    cdef const checksum_t* checksum
    cdef uint64_t value
    cdef uint32_t i
    while op != last:
        if op.code == OP_BYTES and op.width:
            random_fill(frame + (op.offset if op.offset >= 0 else <int64_t>length + op.offset), op.width, op.start, m)
        else:
            value = op_value(op, program.tables, m, length)
            if op.width == 0:
                length = <uint32_t>(p.min_length if value < p.min_length else p.length if value > p.length else value)
            else:
                store_value(frame + (op.offset if op.offset >= 0 else <int64_t>length + op.offset), op, value)
        op += 1
    for i in range(p.checksums):
        checksum = program.checksum + p.first_checksum + i
        store_checksum(checksum, program.term + checksum.first_term, frame, program.data + p.data, length)
    return length
