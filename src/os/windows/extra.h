// Parts that only Windows has: large pages by privilege, options beside the DLL, and leaving a process that
// goes on.
#ifndef HUMMOCK_OS_WINDOWS_EXTRA_H
#define HUMMOCK_OS_WINDOWS_EXTRA_H

#include "base/message.h"
#include "os/os.h"

namespace hummock::os {

// Options that come with the library. Before they are read; the text stays.
void set_program_conf(const char* text);

// The library is unloaded: gives the threads' slot and the call at their ends back.
void leave_threads();

// Asks for the privilege that large pages need, unless the options say no. May be repeated.
void ask_for_large_pages();
// One line on whether large pages are on, and if not, why.
void describe_large_pages(base::Line& line);

// Addresses in a slab must be large beside the sum of all its offsets where addresses have 64 bits; else
// anything but the first 32 MiB will do.
inline constexpr uintptr_t kLeastAddress = sizeof(void*) == 8 ? uintptr_t{1} << 29 : uintptr_t{1} << 25;

// `before` + size bytes, aligned as map_aligned says, where `may` agrees if there is one; `type` as of
// VirtualAlloc. Null: see last_error.
void* place(size_t size, size_t align, size_t before, uint32_t type, MayStand may = nullptr);

// Closes the region log: the library is unloaded.
void close_log();

}  // namespace hummock::os

#endif  // HUMMOCK_OS_WINDOWS_EXTRA_H
