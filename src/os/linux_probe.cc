// The probes' semaphores.
#include "os/probe.h"

#if defined(__ELF__) && defined(__linux__)

extern "C" {

#define HUMMOCK_SEMAPHORE(name) __attribute__((section(".probes"), used)) volatile uint16_t name = 0

HUMMOCK_SEMAPHORE(hummock_map_semaphore);
HUMMOCK_SEMAPHORE(hummock_unmap_semaphore);
HUMMOCK_SEMAPHORE(hummock_purge_semaphore);
HUMMOCK_SEMAPHORE(hummock_refill_semaphore);
HUMMOCK_SEMAPHORE(otel_memory_alloc_semaphore);
HUMMOCK_SEMAPHORE(otel_memory_free_semaphore);

}  // extern "C"

#endif
