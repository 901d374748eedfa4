// robust --list | robust CASE: legal but trying use of the allocator. Exit 0: all went well; 77: not
// possible here; anything else: it did not.
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "robust.h"

namespace battery {

size_t resident() {
  char text[128] = {};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return SIZE_MAX;
  const ssize_t length = read(file, text, sizeof(text) - 1);
  close(file);
  size_t all = 0, pages = 0;
  if (length <= 0 || sscanf(text, "%zu %zu", &all, &pages) != 2) return SIZE_MAX;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

bool has_ceilings() {
  const char* checked = getenv("HUMMOCK_CHECKED");
  return checked == nullptr || strcmp(checked, "0") == 0;
}

void check_resident(size_t before, size_t allowed, const char* when) {
  const size_t now = resident();
  if (before == SIZE_MAX || now == SIZE_MAX) end(kSkipped, "skipped: no /proc/self/statm");
  const size_t more = now > before ? now - before : 0;
  dprintf(STDERR_FILENO, "note: %.1f MiB more resident %s\n", static_cast<double>(more) / MiB, when);
  if (has_ceilings() && more > allowed) end(kFailed, "%s: %zu bytes more, allowed %zu", when, more, allowed);
}

char* filled(size_t size, int value) {
  char* block = static_cast<char*>(call::malloc(size));
  if (block == nullptr) end(kFailed, "no memory for %zu bytes", size);
  memset(block, value, size);
  return block;
}

void check_filled(const void* block, size_t size, int value) {
  const char* bytes = static_cast<const char*>(block);
  if (size == 0 || (bytes[0] == static_cast<char>(value) && memcmp(bytes, bytes + 1, size - 1) == 0)) return;
  for (size_t i = 0; i < size; ++i) {
    if (bytes[i] != static_cast<char>(value)) end(kFailed, "byte %zu of %zu changed", i, size);
  }
}

void exercise(uint64_t seed, size_t rounds) {
  struct {
    char* block;
    size_t size;
    int value;
  } live[64] = {};
  Random random(seed);
  for (size_t i = 0; i < rounds; ++i) {
    auto& it = live[random.below(64)];
    check_filled(it.block, it.size, it.value);
    it.value = static_cast<int>(random.below(256));
    const size_t top = i % 50 == 49 ? 300 * KiB : i % 7 == 0 ? 20 * KiB : 700;
    const size_t size = random.between(1, top);
    const size_t way = random.below(5);
    if (way == 0) {
      it.block = static_cast<char*>(call::realloc(it.block, size));
    } else {
      call::free(it.block);
      it.block = static_cast<char*>(way == 1   ? call::calloc(1, size)
                                    : way == 2 ? call::memalign(size_t{16} << random.below(8), size)
                                               : call::malloc(size));
    }
    if (it.block == nullptr) end(kFailed, "no memory for %zu bytes", size);
    if (way == 1) check_filled(it.block, size, 0);
    memset(it.block, it.value, it.size = size);
  }
  for (auto& it : live) {
    check_filled(it.block, it.size, it.value);
    call::free(it.block);
  }
}

void run_again(const char* name, const char* argument) {
  char path[] = "/proc/self/exe";
  char* const list[] = {arguments[0], const_cast<char*>(name), const_cast<char*>(argument), nullptr};
  execv(path, list);
  execv(arguments[0], list);
}

void expect_success(int child, const char* what) {
  if (child < 0) end(kFailed, "%s: cannot start: %s", what, strerror(errno));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) end(kFailed, "%s: lost: %s", what, strerror(errno));
  }
  if (WIFSIGNALED(status)) end(kFailed, "%s: killed by signal %d", what, WTERMSIG(status));
  if (WEXITSTATUS(status) == kSkipped) _exit(kSkipped);
  if (WEXITSTATUS(status) != kPassed) end(kFailed, "%s: exit %d", what, WEXITSTATUS(status));
}

}  // namespace battery

int main(int argc, char** argv) {
  using namespace battery;
  const Cases families[] = {argument_cases, block_cases,  process_cases, limit_cases,
                            denial_cases,   thread_cases, fork_cases,    load_cases};
  return run_named(argc, argv, families, [](const Case&) {});
}
