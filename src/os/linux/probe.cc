// The probes' semaphores.
#include "os/probe.h"

#if defined(__ELF__) && defined(__linux__)

extern "C" {

#define HUMMOCK_SEMAPHORE(name) __attribute__((section(".probes"), used)) volatile uint16_t name = 0;
HUMMOCK_SEMAPHORES(HUMMOCK_SEMAPHORE)

}  // extern "C"

#endif
