// The program and its shared objects, found from an address inside, without malloc.
#ifndef HUMMOCK_TRACE_LINUX_MODULES_H
#define HUMMOCK_TRACE_LINUX_MODULES_H

#include <stdint.h>

namespace hummock::trace {

struct Module {
  uintptr_t start, end;          // what its segments span
  uintptr_t base;                // added to the addresses in its file
  const char* name;              // of its file; empty: the program itself
  const unsigned char* unwinds;  // its .eh_frame_hdr, or null
};

// False: the address lies in none.
bool find_module(uintptr_t address, Module* out);

}  // namespace hummock::trace

#endif  // HUMMOCK_TRACE_LINUX_MODULES_H
