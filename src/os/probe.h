// USDT probes: places in the library that tracers such as bpftrace, perf and gdb can name. docs/profile.md
// lists them. A probe is a no-op that a note in the ELF file describes; who attaches counts its semaphore up,
// and until then it costs a load and a branch. Slow paths only.
//
// A note of the owner stapsdt, type 3, holds three addresses (the no-op's, that of a mark by which tools find
// how far the file was moved, the semaphore's), then three strings: provider, name, and where each argument
// stands, as size@operand.
#ifndef HUMMOCK_OS_PROBE_H
#define HUMMOCK_OS_PROBE_H

#include <stdint.h>

#if defined(__ELF__) && defined(__linux__)

// In a section of their own, by which tools know them. Tracers write there.
#define HUMMOCK_SEMAPHORES(X)    \
  X(hummock_map_semaphore)       \
  X(hummock_unmap_semaphore)     \
  X(hummock_purge_semaphore)     \
  X(hummock_refill_semaphore)    \
  X(otel_memory_alloc_semaphore) \
  X(otel_memory_free_semaphore)
#define HUMMOCK_SEMAPHORE(name) extern "C" __attribute__((visibility("hidden"))) volatile uint16_t name;
HUMMOCK_SEMAPHORES(HUMMOCK_SEMAPHORE)
#undef HUMMOCK_SEMAPHORE

#if __SIZEOF_POINTER__ == 8
#define HUMMOCK_PROBE_WORD ".8byte"
#define HUMMOCK_PROBE_SIZE "8@"
#else
#define HUMMOCK_PROBE_WORD ".4byte"
#define HUMMOCK_PROBE_SIZE "4@"
#endif

// `arguments`: a string of operands, each after HUMMOCK_PROBE_SIZE.
#define HUMMOCK_PROBE(provider, name, arguments, ...)                               \
  do {                                                                              \
    if (__builtin_expect(provider##_##name##_semaphore == 0, true)) break;          \
    asm volatile(                                                                   \
        "1: nop\n"                                                                  \
        ".pushsection .note.stapsdt, \"\", \"note\"\n"                              \
        ".balign 4\n"                                                               \
        ".4byte 3f - 2f, 5f - 4f, 3\n"                                              \
        "2: .asciz \"stapsdt\"\n"                                                   \
        "3: .balign 4\n"                                                            \
        "4: " HUMMOCK_PROBE_WORD " 1b, _.stapsdt.base, " #provider "_" #name        \
        "_semaphore\n"                                                              \
        ".asciz \"" #provider "\", \"" #name "\", \"" arguments                     \
        "\"\n"                                                                      \
        "5: .balign 4\n"                                                            \
        ".popsection\n"                                                             \
        ".ifndef _.stapsdt.base\n"                                                  \
        ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
        ".weak _.stapsdt.base\n"                                                    \
        ".hidden _.stapsdt.base\n"                                                  \
        "_.stapsdt.base: .space 1\n"                                                \
        ".popsection\n"                                                             \
        ".endif\n" ::__VA_ARGS__);                                                  \
  } while (false)

#define HUMMOCK_PROBE1(provider, name, a) \
  HUMMOCK_PROBE(provider, name, HUMMOCK_PROBE_SIZE "%0", "r"((uintptr_t)(a)))
#define HUMMOCK_PROBE2(provider, name, a, b)                                                           \
  HUMMOCK_PROBE(provider, name, HUMMOCK_PROBE_SIZE "%0 " HUMMOCK_PROBE_SIZE "%1", "r"((uintptr_t)(a)), \
                "r"((uintptr_t)(b)))
#define HUMMOCK_PROBE3(provider, name, a, b, c)                                                            \
  HUMMOCK_PROBE(provider, name, HUMMOCK_PROBE_SIZE "%0 " HUMMOCK_PROBE_SIZE "%1 " HUMMOCK_PROBE_SIZE "%2", \
                "r"((uintptr_t)(a)), "r"((uintptr_t)(b)), "r"((uintptr_t)(c)))

#else

#define HUMMOCK_PROBE1(provider, name, a) \
  do {                                    \
  } while (false)
#define HUMMOCK_PROBE2(provider, name, a, b) \
  do {                                       \
  } while (false)
#define HUMMOCK_PROBE3(provider, name, a, b, c) \
  do {                                          \
  } while (false)

#endif

#endif  // HUMMOCK_OS_PROBE_H
