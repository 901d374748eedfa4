// What only Windows has: large pages by privilege, the region log, and leaving a process that goes on.
#ifndef HUMMOCK_OS_WINDOWS_H
#define HUMMOCK_OS_WINDOWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "os/os.h"

namespace hummock::os {

// The library is unloaded: gives the threads' slot and the call at their ends back.
void leave_threads();

// Options that come with the library. Before they are read; the text stays.
void set_program_conf(const char* text);

// ---- Large pages (os/windows_large.cc) ------------------------------------------------------------

namespace large {

// Asks for the privilege, unless the options say no, and notes the outcome. May be repeated: it then asks
// again, and forgets the pauses that refusals brought.
void enable();

// One line on whether large pages are on, and if not, why and what helps.
void describe(base::Line& line);

// *size bytes, or fewer but at least `least`, at a multiple of `align`, in large pages. Null: not now.
void* map(size_t* size, size_t least, size_t align);

size_t mapped_bytes();

}  // namespace large

// ---- The region log (os/windows_log.cc) -----------------------------------------------------------

namespace log {

// Opens malloc_<process>.log in the working directory, or else in the directory for temporary files; tells
// in the first line who writes. `module` is the DLL's handle, null for the program itself. Once.
void open(void* module);
void close();
bool is_open();

// Each line goes to the file at once: it survives a crash.
void write(const base::Line& line);
// What is said before the log is open is kept (up to a few lines), and written when it is.
void write_said(const char* text, size_t length);

uint64_t ticks();  // for `since` below

// A line of the log: time since start, duration since `since`, size, address, what, the running total,
// which changes by `change` bytes.
void event(uint64_t since, size_t size, const void* at, const char* what, ptrdiff_t change,
           const base::Line* reason = nullptr);

}  // namespace log

// The machine and the process, several lines of the log (os/windows_facts.cc).
void write_facts();

// Addresses in a slab must be large beside the sum of all its offsets where addresses have 64 bits; else
// anything but the first 32 MiB will do.
inline constexpr uintptr_t kLeastAddress = sizeof(void*) == 8 ? uintptr_t{1} << 29 : uintptr_t{1} << 25;

// `before` + size bytes, aligned as map_aligned says; `type` as of VirtualAlloc. No log. Null: see last_error.
void* place(size_t size, size_t align, size_t before, uint32_t type);

}  // namespace hummock::os

#endif  // HUMMOCK_OS_WINDOWS_H
