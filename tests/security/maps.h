// What is mapped in this process, read without malloc.
#ifndef HUMMOCK_TESTS_SECURITY_MAPS_H
#define HUMMOCK_TESTS_SECURITY_MAPS_H

#include <stddef.h>
#include <stdint.h>

namespace battery {

// Is the address in a mapping, of whatever kind?
bool is_mapped(uint64_t address);

// Is all of it in memory that an allocator can have: private, of no file, not the stack, not the zeroed data
// that stands right behind a file's? Reads the list again only when the last one did not have it.
bool may_be_heap(const char* from, size_t size);

}  // namespace battery

#endif  // HUMMOCK_TESTS_SECURITY_MAPS_H
