# What a worker publishes: one block of 64-bit words in shared memory, written by that
# worker alone, read by the parent at any time. `stats.py` knows the same layout.

cdef enum:
    ERRNO_MAX = 136      # errno numbers on Linux end at 133; larger ones share the last word
    COUNTERS_WORDS = 160  # 1280 bytes: a multiple of the cache line

cdef enum State:
    STARTING = 0
    READY = 1
    RUNNING = 2
    PAUSED = 3
    ENDED = 4

ctypedef struct counters_t:
    uint64_t tx_packets     # accepted by the kernel (or written, or built by `null`)
    uint64_t tx_bytes       # their lengths, without FCS
    uint64_t abandoned      # frames given up because the kernel refuses them for good
    uint64_t state
    uint64_t first_ns       # CLOCK_MONOTONIC of the first and the last acceptance
    uint64_t last_ns
    uint64_t paused_ns
    uint64_t pauses
    uint64_t reason         # why it ended, see Reason
    uint64_t error          # errno of the end, if that was an error
    uint64_t queued         # frames that were still in the kernel's ring at the end
    uint64_t reserved[13]
    uint64_t refused[ERRNO_MAX]  # refusals by errno; most are tried again

# The parent's word to all workers, in the same memory before the blocks.
ctypedef struct control_t:
    uint64_t start_ns       # CLOCK_MONOTONIC of slot 0; 0: wait
    uint64_t stop           # 1: end now


cdef inline void count_refusal(counters_t* counters, int code) noexcept nogil:
    counters.refused[code if 0 < code < ERRNO_MAX else ERRNO_MAX - 1] += 1


cdef inline void count_accepted(counters_t* counters, uint64_t packets, uint64_t octets) noexcept nogil:
    counters.tx_packets += packets
    counters.tx_bytes += octets
