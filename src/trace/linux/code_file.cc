#include "trace/code_file.h"

#include <string.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "trace/linux/modules.h"

namespace hummock::trace {

bool find_code_file(uintptr_t address, CodeFile* out) {
  Module module;
  if (!find_module(address, &module)) return false;
  *out = {module.start, module.end, module.base, module.name};
  return true;
}

void path_of_code_file(const CodeFile& file, char* out, size_t room) {
  const base::KeepErrno keep;
  size_t length = strnlen(file.name, room - 1);
  memcpy(out, file.name, length);
  if (length == 0) {
    const ssize_t got = readlink("/proc/self/exe", out, room - 1);
    length = got > 0 ? static_cast<size_t>(got) : 0;
  }
  out[length] = '\0';
}

}  // namespace hummock::trace
