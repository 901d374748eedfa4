// suite --list | suite CASE [long | quiet]: does one wrong thing with memory.
//
// Alone, it then ends, as a short program does. With `long` it lives on and looks for wrong memory (the
// probation of the battery); `quiet` is the same with blocks of zeros, which disturb fewer links.
// Exit 0: nobody noticed. 42: the allocator handed out memory it must not. 1: it refuses sound requests.
#include <string.h>
#include <unistd.h>

#include "suite.h"

namespace battery {

void stage(const char* name) {
  char line[64] = "@ ";
  const size_t length = strnlen(name, sizeof(line) - 4);
  memcpy(line + 2, name, length);
  line[2 + length] = '\n';
  if (write(STDERR_FILENO, line, length + 3) < 0) _exit(kFailed);
}

void* block(size_t size) {
  const size_t around = size <= 8 * KiB ? 16 : size <= 1 * MiB ? 2 : 0;
  return in_crowd(size, around, around);
}

void go_on(size_t size) {
  void* blocks[3];
  for (void*& b : blocks) b = call::malloc(size);
  for (void* b : blocks) call::free(b);
}

}  // namespace battery

int main(int argc, char** argv) {
  using namespace battery;
  const Cases families[] = {security_double_free, security_invalid_free, security_overflow,
                            security_after_free};
  const bool quiet = argc == 3 && strcmp(argv[2], "quiet") == 0;
  static bool lives_on = quiet || (argc == 3 && strcmp(argv[2], "long") == 0);
  if (quiet) fill_with_zeros();
  return run_named(argc, argv, families, [](const Case& c) {
    stage(lives_on ? "long after" : "end");
    if (lives_on) probation(c.probe);
  });
}
