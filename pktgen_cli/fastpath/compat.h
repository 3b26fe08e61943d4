/* Shims: names newer than the build machine's kernel headers, and what Cython cannot say. */
#ifndef PKTGEN_COMPAT_H
#define PKTGEN_COMPAT_H

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/if_packet.h>

#ifndef PACKET_TX_HAS_OFF
#define PACKET_TX_HAS_OFF 19
#endif
#ifndef PACKET_QDISC_BYPASS
#define PACKET_QDISC_BYPASS 20
#endif
#ifndef SO_SNDBUFFORCE
#define SO_SNDBUFFORCE 32
#endif

/* Words shared between processes, and between a process and the kernel. */
static inline uint64_t load64(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void store64(uint64_t *p, uint64_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
static inline uint32_t load32(const uint32_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static inline void store32(uint32_t *p, uint32_t v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }

/* Unaligned big-endian access; memcpy of a constant size compiles to one instruction. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BE16(v) __builtin_bswap16(v)
#define BE32(v) __builtin_bswap32(v)
#define BE64(v) __builtin_bswap64(v)
#define LE64(v) (v)
#else
#define BE16(v) (v)
#define BE32(v) (v)
#define BE64(v) (v)
#define LE64(v) __builtin_bswap64(v)
#endif

static inline uint16_t get_be16(const uint8_t *p) { uint16_t v; memcpy(&v, p, 2); return BE16(v); }
static inline uint32_t get_be32(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return BE32(v); }
static inline uint64_t get_be64(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return BE64(v); }
static inline void put_be16(uint8_t *p, uint16_t v) { v = BE16(v); memcpy(p, &v, 2); }
static inline void put_be32(uint8_t *p, uint32_t v) { v = BE32(v); memcpy(p, &v, 4); }
static inline void put_be64(uint8_t *p, uint64_t v) { v = BE64(v); memcpy(p, &v, 8); }
static inline void put_le64(uint8_t *p, uint64_t v) { v = LE64(v); memcpy(p, &v, 8); }

/* slot * num / den without overflow: where a schedule starts, once a worker and group. */
static inline uint64_t muldiv64(uint64_t a, uint64_t b, uint64_t d, uint64_t *rest)
{
	unsigned __int128 p = (unsigned __int128)a * b, q = p / d;

	*rest = (uint64_t)(p % d);
	return q > UINT64_MAX / 4 ? UINT64_MAX / 4 : (uint64_t)q;
}

/* A handler after which system calls that block return: signal(3) would restart them. */
static inline int catch_signal(int number, void (*handler)(int))
{
	struct sigaction action;

	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	return sigaction(number, &action, 0);
}

#if defined(__x86_64__) || defined(__i386__)
#define cpu_relax() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define cpu_relax() __asm__ __volatile__("yield" ::: "memory")
#else
#define cpu_relax() __asm__ __volatile__("" ::: "memory")
#endif

#endif
