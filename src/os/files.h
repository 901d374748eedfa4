// Files that the user named.
#ifndef HUMMOCK_OS_FILES_H
#define HUMMOCK_OS_FILES_H

#include <stddef.h>

namespace hummock::os {

// A new file, or one made empty, out of the way of the program's descriptors; -1 and *error.
int open_new(const char* path, int* error);
// False and *error: not all was written.
bool write_file(int fd, const char* bytes, size_t length, int* error);
// The first `length` bytes of the maps of this process go to the file, line by line. False and *error.
bool copy_maps(int fd, int* error);
bool close_file(int fd, int* error);

}  // namespace hummock::os

#endif  // HUMMOCK_OS_FILES_H
