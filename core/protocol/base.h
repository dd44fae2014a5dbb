// What every protocol header needs: fixed-width types, byte order, attributes. C11, C++17 and BPF.
#ifndef ERAR_PROTOCOL_BASE_H
#define ERAR_PROTOCOL_BASE_H

#include <linux/types.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "lanes travel in little-endian order and are added where they lie: big-endian hosts cannot take part"
#endif

#define ERAR_BE16(x) __builtin_bswap16((__u16)(x))
#define ERAR_BE32(x) __builtin_bswap32(x)

// Inlined everywhere: the BPF verifier then sees one function with its constants in place.
#define ERAR_INLINE static inline __attribute__((always_inline, unused))

// A field that another CPU or the process may change at any moment: one load or store, not repeated. That
// loads before it stay before it is x86's order (and what compilers do around an acquire or volatile load),
// not the C standard's: a port to a weaker machine needs fences at the second looks.
#ifdef __bpf__
#define ERAR_READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define ERAR_WRITE_ONCE(x, value) (*(volatile __typeof__(x) *)&(x) = (value))
#else
#define ERAR_READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define ERAR_WRITE_ONCE(x, value) __atomic_store_n(&(x), (value), __ATOMIC_RELEASE)
#endif

// Words are views of bytes that others see as something else.
typedef __u64 __attribute__((may_alias)) erar_word;

#ifdef __cplusplus
#define ERAR_STATIC_ASSERT(condition, text) static_assert(condition, text)
#else
#define ERAR_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
#endif

#endif
