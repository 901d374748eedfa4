// A program's first call of malloc may come before libc has begun. Options from the environment
// (HUMMOCK_DECAY_MS=1234, which tests/CMakeLists.txt sets) hold all the same.
#include <stdlib.h>
#include <string.h>

extern "C" int hummock_option_get(const char* name, char* value, size_t room) __attribute__((weak));

namespace {

void allocate(int, char**, char**) {
  free(malloc(100));
}
using First = void (*)(int, char**, char**);
__attribute__((section(".preinit_array"), used)) First first = allocate;

}  // namespace

int main() {
  char value[40] = "";
  if (hummock_option_get == nullptr) return 2;
  hummock_option_get("decay_ms", value, sizeof value);
  return strcmp(value, "1234") == 0 ? 0 : 1;
}
