// What the programs of the battery share: a case, calls the compiler cannot see through, threads.
//
// The programs are plain: they are not linked to Hummock, which (or another allocator) is preloaded.
#ifndef HUMMOCK_TESTS_BATTERY_BATTERY_H
#define HUMMOCK_TESTS_BATTERY_BATTERY_H

#include <malloc.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <new>
#include <span>

namespace battery {

enum Exit { kPassed = 0, kFailed = 1, kUnknownCase = 2, kCorrupt = 42, kSkipped = 77 };

struct Case {
  const char* name;
  const char* family;
  const char* what;  // what the program does, in one line
  void (*run)();
  size_t probe = 64;             // misuse: the size of block that the probation asks most for
  const char* why_default = "";  // misuse: why the default mode cannot find it
  const char* why_checked = "";  // misuse: why checked mode cannot either
  bool preload = true;           // false: runs on the C library's allocator
  unsigned timeout = 600;        // seconds after which it counts as hanging
};

using Cases = std::span<const Case>;

// The main function of both programs: --list prints the cases, a name runs one; `after` is called when
// the case has returned.
int run_named(int argc, char** argv, std::span<const Cases> families, void (*after)(const Case&));

extern char** arguments;  // argv

// Ends the process with the exit code and a line on standard error. They work without malloc.
[[noreturn]] void end(Exit code, const char* format, ...) __attribute__((format(printf, 2, 3)));

// The allocator through pointers that the compiler must read each time, so that it neither removes
// nor warns of what these programs do with it.
namespace call {
using NewSized = void (*)(void*, size_t) noexcept;
inline void* (*volatile malloc)(size_t) = ::malloc;
inline void (*volatile free)(void*) = ::free;
inline void* (*volatile calloc)(size_t, size_t) = ::calloc;
inline void* (*volatile realloc)(void*, size_t) = ::realloc;
inline void* (*volatile reallocarray)(void*, size_t, size_t) = ::reallocarray;
inline void* (*volatile aligned_alloc)(size_t, size_t) = ::aligned_alloc;
inline int (*volatile posix_memalign)(void**, size_t, size_t) = ::posix_memalign;
inline void* (*volatile memalign)(size_t, size_t) = ::memalign;
inline void* (*volatile valloc)(size_t) = ::valloc;
inline void* (*volatile pvalloc)(size_t) = ::pvalloc;
inline size_t (*volatile usable)(void*) = ::malloc_usable_size;
inline void* (*volatile new_one)(size_t) = ::operator new;
inline void* (*volatile new_array)(size_t) = ::operator new[];
inline void (*volatile delete_one)(void*) = ::operator delete;
inline void (*volatile delete_array)(void*) = ::operator delete[];
inline void (*volatile delete_sized)(void*, size_t) = ::operator delete;

// C23's; end the process with kSkipped where they do not exist.
void free_sized(void* block, size_t size);
void free_aligned_sized(void* block, size_t alignment, size_t size);
}  // namespace call

// Runs `work` on a thread of its own. With a `stack` of 0, the default one.
class Thread {
 public:
  template <class Work>
  explicit Thread(Work& work, size_t stack = 0) {
    start([](void* w) -> void* { return (*static_cast<Work*>(w))(), nullptr; }, &work, stack);
  }
  Thread(const Thread&) = delete;
  void join();
  pthread_t id() const { return id_; }

 private:
  void start(void* (*entry)(void*), void* argument, size_t stack);
  pthread_t id_;
};

template <class Work>
void on_thread(Work work, size_t stack = 0) {
  Thread thread(work, stack);
  thread.join();
}

// Numbers that look random and are the same each run.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2 + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  size_t below(size_t limit) { return next() % limit; }
  size_t between(size_t least, size_t most) { return least + below(most - least + 1); }

 private:
  uint64_t state_;
};

inline constexpr size_t KiB = 1024;
inline constexpr size_t MiB = 1024 * KiB;

}  // namespace battery

#endif  // HUMMOCK_TESTS_BATTERY_BATTERY_H
