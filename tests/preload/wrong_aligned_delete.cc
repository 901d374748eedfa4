// In checked mode, blocks of aligned new that the wrong delete frees: each ends its process with a report.
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>
#include <new>

#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif

namespace {

constexpr auto kAlign = static_cast<std::align_val_t>(64);
constexpr auto kOther = static_cast<std::align_val_t>(16);

void* (*volatile make)(size_t, std::align_val_t) = ::operator new;
void* (*volatile make_array)(size_t, std::align_val_t) = ::operator new[];
void (*volatile end)(void*, std::align_val_t) = ::operator delete;
void (*volatile end_array)(void*, std::align_val_t) = ::operator delete[];

constexpr void (*kWrong[])() = {
    [] { end_array(make(100, kAlign), kAlign); },
    [] { end(make_array(100, kAlign), kAlign); },
    [] { end(make(100, kAlign), kOther); },
    [] { end_array(make_array(100, kAlign), kOther); },
};
constexpr void (*kRight[])() = {
    [] { end(make(100, kAlign), kAlign); },
    [] { end_array(make_array(100, kAlign), kAlign); },
};

bool aborts(void (*call)()) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {};
    setrlimit(RLIMIT_CORE, &none);
    call();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

}  // namespace

int main() {
  size_t told = 0;
  for (const auto call : kWrong) told += aborts(call);
  size_t passed = 0;
  for (const auto call : kRight) passed += !aborts(call);
  if (told == std::size(kWrong) && passed == std::size(kRight)) return 0;
  fprintf(stderr, "told %zu of %zu, passed %zu of %zu\n", told, std::size(kWrong), passed, std::size(kRight));
  return 1;
}
