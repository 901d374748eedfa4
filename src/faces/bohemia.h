// The functions that the engine calls. Blocks of 16 bytes and more are aligned to 16; any thread may free any
// block.
#ifndef HUMMOCK_FACES_BOHEMIA_H
#define HUMMOCK_FACES_BOHEMIA_H

#include <stddef.h>

#define HUMMOCK_BOHEMIA __stdcall

extern "C" {

// Bytes that hold memory, and bytes of address space.
size_t HUMMOCK_BOHEMIA MemTotalCommitted();
size_t HUMMOCK_BOHEMIA MemTotalReserved();
// Gives at least `size` bytes of free memory back to the system, if there are so many; returns how many.
size_t HUMMOCK_BOHEMIA MemFlushCache(size_t size);
void HUMMOCK_BOHEMIA MemFlushCacheAll();
// The room of a block; null: 0.
size_t HUMMOCK_BOHEMIA MemSize(void* block);
void* HUMMOCK_BOHEMIA MemAlloc(size_t size);
void HUMMOCK_BOHEMIA MemFree(void* block);
// The same for blocks with an alignment, which may be 0.
size_t HUMMOCK_BOHEMIA MemSizeA(void* block, size_t align);
void* HUMMOCK_BOHEMIA MemAllocA(size_t size, size_t align);
void HUMMOCK_BOHEMIA MemFreeA(void* block);
// Asks for the privilege that large pages need, whether blocks exist already or not.
void HUMMOCK_BOHEMIA EnableHugePages();

}  // extern "C"

#endif  // HUMMOCK_FACES_BOHEMIA_H
