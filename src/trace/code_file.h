// The program and its shared objects, found from an address inside.
#ifndef HUMMOCK_TRACE_CODE_FILE_H
#define HUMMOCK_TRACE_CODE_FILE_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::trace {

// The addresses that a program or shared object spans, and what to add to the addresses in its file.
struct CodeFile {
  uintptr_t start, end, base;
  const char* name;  // empty: the program itself
};
// False: the address is in none. Takes no lock where libc has a call for it (glibc 2.35), and never
// allocates.
bool find_code_file(uintptr_t address, CodeFile* out);
// Cut to fit, ended by NUL.
void path_of_code_file(const CodeFile& file, char* out, size_t room);

}  // namespace hummock::trace

#endif  // HUMMOCK_TRACE_CODE_FILE_H
