from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from "compat.h" nogil:
    uint64_t load64(const uint64_t* p)
    void store64(uint64_t* p, uint64_t v)
    uint32_t load32(const uint32_t* p)
    void store32(uint32_t* p, uint32_t v)
    uint16_t get_be16(const uint8_t* p)
    uint32_t get_be32(const uint8_t* p)
    uint64_t get_be64(const uint8_t* p)
    void put_be16(uint8_t* p, uint16_t v)
    void put_be32(uint8_t* p, uint32_t v)
    void put_be64(uint8_t* p, uint64_t v)
    void put_le64(uint8_t* p, uint64_t v)
    uint64_t muldiv64(uint64_t a, uint64_t b, uint64_t d, uint64_t* rest)
    void cpu_relax()
    int catch_signal(int number, void (*handler)(int) noexcept nogil)

cdef extern from "<stdlib.h>" nogil:
    void* aligned_alloc(size_t alignment, size_t size)
