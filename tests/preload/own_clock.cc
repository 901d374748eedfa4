// A program with a clock_gettime of its own that allocates, as libfaketime's does: Hummock asks the kernel,
// so no call comes back into malloc under a lock.
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace {

size_t asked;

}  // namespace

extern "C" int clock_gettime(clockid_t which, timespec* now) noexcept {
  ++asked;
  free(malloc(100));
  return static_cast<int>(syscall(SYS_clock_gettime, which, now));
}

int main() {
  for (int i = 0; i < 400; ++i) {
    void* blocks[40];
    for (void*& block : blocks) block = malloc(static_cast<size_t>(i % 20) << 16 | 80);
    for (void* block : blocks) free(block);
  }
  free(malloc(size_t{100} << 20));
  return asked == 0 ? 0 : 1;
}
