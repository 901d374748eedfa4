// What Linux has in trace/linux/code_file.cc: there is no profiler on Windows yet.
#include "trace/code_file.h"

namespace hummock::trace {

bool find_code_file(uintptr_t, CodeFile*) {
  return false;
}

void path_of_code_file(const CodeFile&, char* out, size_t) {
  out[0] = '\0';
}

}  // namespace hummock::trace
