# Internet checksum (RFC 1071): 32-bit sums in 64-bit accumulators, folded once.

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

from pktgen_cli.fastpath.compat cimport get_be16, get_be32


cdef inline uint16_t fold(uint64_t total) noexcept nogil:
    total = (total >> 32) + <uint32_t>total
    total = (total >> 32) + <uint32_t>total
    total = (total >> 16) + (total & 0xFFFF)
    total = (total >> 16) + (total & 0xFFFF)
    total = (total >> 16) + (total & 0xFFFF)
    return <uint16_t>total


cdef inline uint64_t sum_bytes(const uint8_t* p, uint32_t count, bint odd) noexcept nogil:
    """Sum of big-endian words; `odd` when the first byte stands at an odd place of the sum."""
    cdef uint64_t total = 0
    cdef uint16_t folded
    while count >= 4:
        total += get_be32(p)
        p += 4
        count -= 4
    if count >= 2:
        total += get_be16(p)
        p += 2
        count -= 2
    if count:
        total += <uint32_t>p[0] << 8
    if odd:
        folded = fold(total)
        total = <uint16_t>((folded >> 8) | (folded << 8))
    return total
