// What Linux has in os/linux/code_file.cc: there is no profiler on Windows yet.
#include "os/code_file.h"

#include <errno.h>

namespace hummock::os {

bool find_code_file(uintptr_t, CodeFile*) {
  return false;
}

void path_of_code_file(const CodeFile&, char* out, size_t) {
  out[0] = '\0';
}

void* claim_shared(const char*, size_t, size_t) {
  return nullptr;
}

bool shares_memory(const char*) {
  return false;
}

int open_new(const char*, int* error) {
  *error = ENOSYS;
  return -1;
}

bool write_file(int, const char*, size_t, int* error) {
  *error = ENOSYS;
  return false;
}

bool copy_maps(int, int* error) {
  *error = ENOSYS;
  return false;
}

bool close_file(int, int* error) {
  *error = ENOSYS;
  return false;
}

}  // namespace hummock::os
