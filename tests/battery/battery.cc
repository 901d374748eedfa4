#include "battery.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

namespace battery {

char** arguments;

void end(Exit code, const char* format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  int length = vsnprintf(line, sizeof(line) - 1, format, list);
  va_end(list);
  if (length > static_cast<int>(sizeof(line)) - 2) length = sizeof(line) - 2;
  line[length] = '\n';
  if (write(STDERR_FILENO, line, static_cast<size_t>(length) + 1) < 0) _exit(code);
  _exit(code);
}

namespace {

// One line a case: fields separated by tabs, read by run_battery.py.
void list(std::span<const Cases> families) {
  for (const Cases& cases : families) {
    for (const Case& c : cases) {
      printf("%s\t%s\t%s\t%s\t%s\t%d\t%u\n", c.name, c.family, c.what, c.why_default, c.why_checked,
             c.preload, c.timeout);
    }
  }
}

const Case* find(std::span<const Cases> families, const char* name) {
  for (const Cases& cases : families) {
    for (const Case& c : cases) {
      if (strcmp(c.name, name) == 0) return &c;
    }
  }
  return nullptr;
}

template <class Function>
Function required(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) end(kSkipped, "skipped: no %s here", name);
  return reinterpret_cast<Function>(found);
}

}  // namespace

int run_named(int argc, char** argv, std::span<const Cases> families, void (*after)(const Case&)) {
  arguments = argv;
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    list(families);
    return kPassed;
  }
  const Case* chosen = argc >= 2 ? find(families, argv[1]) : nullptr;
  if (chosen == nullptr) end(kUnknownCase, "usage: %s --list | CASE", argv[0]);
  chosen->run();
  after(*chosen);
  return kPassed;
}

void call::free_sized(void* block, size_t size) {
  required<void (*)(void*, size_t)>("free_sized")(block, size);
}

void call::free_aligned_sized(void* block, size_t alignment, size_t size) {
  required<void (*)(void*, size_t, size_t)>("free_aligned_sized")(block, alignment, size);
}

void Thread::start(void* (*entry)(void*), void* argument, size_t stack) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack != 0) pthread_attr_setstacksize(&attributes, stack);
  const int error = pthread_create(&id_, &attributes, entry, argument);
  pthread_attr_destroy(&attributes);
  if (error != 0) end(kFailed, "cannot start a thread: %s", strerror(error));
}

void Thread::join() {
  pthread_join(id_, nullptr);
}

}  // namespace battery
