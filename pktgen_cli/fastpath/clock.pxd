# Time in nanoseconds. Reading the clock costs about 23 ns (vDSO), so loops read it once a batch.

from libc.stdint cimport int64_t, uint64_t

cdef extern from "<time.h>" nogil:
    struct timespec:
        int64_t tv_sec
        int64_t tv_nsec
    const int CLOCK_MONOTONIC
    int clock_gettime(int clock, timespec* t)
    int nanosleep(const timespec* wanted, timespec* rest)


cdef inline uint64_t now_ns(int clock) noexcept nogil:
    cdef timespec t
    clock_gettime(clock, &t)
    return <uint64_t>t.tv_sec * 1000000000 + <uint64_t>t.tv_nsec


cdef inline uint64_t monotonic_ns() noexcept nogil:
    return now_ns(CLOCK_MONOTONIC)


cdef inline void sleep_ns(uint64_t length) noexcept nogil:
    cdef timespec t
    t.tv_sec = <int64_t>(length // 1000000000)
    t.tv_nsec = <int64_t>(length % 1000000000)
    nanosleep(&t, NULL)
