// What Linux has in os/linux_shared.cc: on Windows nobody can open a page of figures yet.
#include <windows.h>

#include "os/os.h"
#include "os/thread.h"

namespace hummock::os {

void* map_shared(const char*, size_t) {
  return nullptr;
}

void program_name(char* out, size_t) {
  out[0] = '\0';
}

size_t group_limit() {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) ? static_cast<size_t>(status.ullTotalPhys) : 0;
}

unsigned thread_id() {
  return GetCurrentThreadId();
}

}  // namespace hummock::os
