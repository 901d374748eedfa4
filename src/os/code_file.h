// Files of code, and files and memory of the profiler.
#ifndef HUMMOCK_OS_CODE_FILE_H
#define HUMMOCK_OS_CODE_FILE_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::os {

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

// A part of memory that another process shares with this one and those it starts, as a descriptor: the parts
// stand one after the other, each of `size` bytes, and each goes to who first claims it by writing its number
// over the zero that `claim` bytes after its start, in its first page. The variable is "NAME=" as in the
// environment; its value is <descriptor>:<inode>. Null: there is none, or no part is left.
void* claim_shared(const char* variable, size_t size, size_t claim);
// Is there such memory, whether or not parts of it are left?
bool shares_memory(const char* variable);

// A new file, or one made empty, out of the way of the program's descriptors; -1 and *error.
int open_new(const char* path, int* error);
// False and *error: not all was written.
bool write_file(int fd, const char* bytes, size_t length, int* error);
// The first `length` bytes of the maps of this process go to the file, line by line. False and *error.
bool copy_maps(int fd, int* error);
bool close_file(int fd, int* error);

}  // namespace hummock::os

#endif  // HUMMOCK_OS_CODE_FILE_H
