#include "arena.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr size_t kChunk = 1 << 20;

char* chunk;
size_t room;
size_t used;

void* map(size_t bytes) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) fail(3, "no memory for %zu bytes of books", bytes);
  return memory;
}

}  // namespace

void* arena_take(size_t bytes) {
  bytes = (bytes + 63) & ~size_t{63};
  used += bytes;
  if (bytes >= kChunk / 4) return map(bytes);
  if (bytes > room) {
    chunk = static_cast<char*>(map(kChunk));
    room = kChunk;
  }
  void* memory = chunk;
  chunk += bytes;
  room -= bytes;
  return memory;
}

size_t arena_used() {
  return used;
}

void fail(int status, const char* format, ...) {
  char line[512];
  const auto start =
      static_cast<size_t>(snprintf(line, sizeof line / 4, "%.100s: ", program_invocation_short_name));
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line + start, sizeof line - start - 1, format, arguments);
  va_end(arguments);
  size_t end = start + static_cast<size_t>(length < 0 ? 0 : length);
  if (end > sizeof line - 2) end = sizeof line - 2;
  line[end] = '\n';
  // Of several threads the first speaks; the others wait for the end, which is near. Relaxed: nothing else is
  // passed on.
  static std::atomic<bool> said{false};
  while (said.exchange(true, std::memory_order_relaxed)) pause();
  if (write(2, line, end + 1) < 0) _exit(status);
  _exit(status);
}
