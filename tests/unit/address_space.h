// What tests of the address space share.
#ifndef HUMMOCK_TESTS_ADDRESS_SPACE_H
#define HUMMOCK_TESTS_ADDRESS_SPACE_H

#include <doctest/doctest.h>
#include <hummock/hummock.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "pages/slab_header.h"
#include "support/support.h"

inline constexpr size_t kKiB = 1024;
inline constexpr size_t kMiB = size_t{1} << 20;
inline constexpr uint64_t kTiB = uint64_t{1} << 40;

// A sanitizer has most of the address space for itself, and an emulator keeps a record of each page that is
// reserved: it would take all memory.
inline constexpr bool kHasAddresses =
    sizeof(void*) == 8 && HUMMOCK_TEST_SANITIZED == 0 && HUMMOCK_TEST_EMULATED == 0;

// In a process of its own. What it returned, or 1000 + the signal that ended it.
template <class Work>
int in_child(Work work) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGABRT, SIG_DFL);
    _exit(work());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

inline void* reserve_place(void* hint, size_t size) {
  void* p = mmap(hint, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// A region more of slabs, which can stand nowhere else.
inline bool fill_a_region(std::vector<void*>* blocks) {
  for (size_t i = 0; i < hummock::kRegionSize / (60 * kKiB); ++i) {
    void* block = hummock_malloc(60 * kKiB);
    if (block == nullptr) return false;
    blocks->push_back(block);
  }
  return true;
}

#endif  // HUMMOCK_TESTS_ADDRESS_SPACE_H
