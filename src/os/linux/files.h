// Small files of /proc and /sys, read without allocating.
#ifndef HUMMOCK_OS_LINUX_FILES_H
#define HUMMOCK_OS_LINUX_FILES_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::os {

inline constexpr uint64_t kNoNumber = ~uint64_t{0};

// The file's first room - 1 bytes, ended by NUL; 0 bytes when it cannot be read. Keeps errno.
size_t read_file(const char* path, char* out, size_t room);

// The same of a file that one read has whole, as those of one value: three system calls.
size_t read_value(const char* path, char* out, size_t room);

// The file under a number that is out of the way of the program's own.
int move_away(int fd);

// Opens or makes a file that the user named, out of the way, with O_APPEND or O_TRUNC. -1 and *error where
// that fails. A pipe must have a reader (else ENXIO): to wait for one would hang the program. Keeps errno.
int open_to_write(const char* path, int flag, int* error);

// The number after `key` where that stands at the start of a line, else kNoNumber. An empty key takes the
// first number of the text.
uint64_t number_after(const char* text, const char* key);

// Likewise of a file, whose first 4 KiB are looked at: three system calls.
uint64_t number_in_file(const char* path, const char* key);

// The rest of the line after `key` and what separates it (spaces, ':', '=', '"'); its length in `*length`.
// Null when no line begins with the key.
const char* text_after(const char* text, const char* key, size_t* length);

}  // namespace hummock::os

#endif  // HUMMOCK_OS_LINUX_FILES_H
