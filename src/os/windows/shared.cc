// What Linux has in os/linux/shared.cc: on Windows nobody can open a page of figures yet.
#include <windows.h>

#include "os/os.h"
#include "os/thread.h"

namespace hummock::os {

void* map_shared(const char*, size_t) {
  return nullptr;
}

bool map_shared_some(SharedInSteps*, const char*, size_t) {
  return true;
}

void forget_shared(SharedInSteps*) {}

void* claim_shared(const char*, size_t, size_t) {
  return nullptr;
}

bool shares_memory(const char*) {
  return false;
}

void program_name(char* out, size_t) {
  out[0] = '\0';
}

bool group_limit(size_t* limit) {
  MEMORYSTATUSEX status = {};
  status.dwLength = sizeof status;
  *limit = GlobalMemoryStatusEx(&status) ? static_cast<size_t>(status.ullTotalPhys) : 0;
  return true;
}

unsigned thread_id() {
  return GetCurrentThreadId();
}

}  // namespace hummock::os
