# The counter-based generator of program.py: values are functions of key and occurrence, no state.

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pktgen_cli.fastpath.compat cimport put_le64

cdef extern from *:
    """
    #define STEP_OCCURRENCE 0x9E3779B97F4A7C15ULL
    #define STEP_WORD 0xD1B54A32D192ED03ULL
    #define MIX_1 0xBF58476D1CE4E5B9ULL
    #define MIX_2 0x94D049BB133111EBULL
    """
    const uint64_t STEP_OCCURRENCE
    const uint64_t STEP_WORD
    const uint64_t MIX_1
    const uint64_t MIX_2


cdef inline uint64_t mix(uint64_t value) noexcept nogil:
    value = (value ^ (value >> 30)) * MIX_1
    value = (value ^ (value >> 27)) * MIX_2
    return value ^ (value >> 31)


cdef inline uint64_t random_word(uint64_t key, uint64_t occurrence) noexcept nogil:
    return mix(key + (occurrence + 1) * STEP_OCCURRENCE)


cdef inline void random_fill(uint8_t* p, uint32_t count, uint64_t key, uint64_t occurrence) noexcept nogil:
    cdef uint64_t state = key + (occurrence + 1) * STEP_OCCURRENCE
    cdef uint64_t word
    while count >= 8:
        put_le64(p, mix(state))
        state += STEP_WORD
        p += 8
        count -= 8
    if count:
        word = mix(state)
        while count:
            p[0] = <uint8_t>word
            word >>= 8
            p += 1
            count -= 1
