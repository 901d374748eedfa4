// Blocks freed twice.
#include <atomic>

#include "misuse.h"

namespace battery {
namespace {

constexpr size_t kMiddle = 20 * KiB;
constexpr size_t kLarge = 300 * KiB;
constexpr size_t kHuge = 40 * MiB;

void at_once() {
  void* p = in_crowd(64);
  call::free(p);
  call::free(p);
}

void lone() {
  void* p = call::malloc(1000);
  call::free(p);
  call::free(p);
}

void after_other() {
  void* p = in_crowd(64);
  void* q = in_crowd(64);
  call::free(p);
  call::free(q);
  call::free(p);
}

void after_200() {
  void* others[200];
  void* p = in_crowd(64);
  for (void*& other : others) other = in_crowd(64, 0, 1);
  call::free(p);
  for (void* other : others) call::free(other);
  call::free(p);
}

void with_malloc_between() {
  call::free(still_free());
}

void with_malloc_between_remote() {
  void* p = still_free();
  on_thread([p] { call::free(p); });
}

void after_other_sizes() {
  void* p = in_crowd(64);
  call::free(p);
  for (size_t size = 100; size < 10000; size += 100) call::free(call::malloc(size));
  call::free(p);
}

void small() {
  void* p = in_crowd(16, 600, 600);
  call::free(p);
  call::free(p);
}

void twice(size_t size) {
  void* p = in_crowd(size, 2, 2);
  call::free(p);
  call::free(p);
}

void middle() {
  twice(kMiddle);
}
void large() {
  twice(kLarge);
}

void huge() {
  void* p = call::malloc(kHuge);
  call::free(p);
  call::free(p);
}

void aligned() {
  void* p = call::aligned_alloc(4096, 200);
  keep(call::aligned_alloc(4096, 200), 200);
  call::free(p);
  call::free(p);
}

void deleted() {
  void* p = call::new_one(64);
  call::delete_one(p);
  call::delete_one(p);
}

// ---- Threads ------------------------------------------------------------------------------------

void then_other_thread() {
  void* p = in_crowd(64);
  call::free(p);
  on_thread([p] { call::free(p); });
}

void after_other_thread() {
  void* p = in_crowd(64);
  on_thread([p] { call::free(p); });
  call::free(p);
}

void owner_ended() {
  void* p = nullptr;
  on_thread([&p] { p = in_crowd(64); });
  call::free(p);
  call::free(p);
}

void twice_remotely() {
  void* p = in_crowd(64);
  on_thread([p] { call::free(p); });
  on_thread([p] { call::free(p); });
}

void twice_in_one_remote_thread() {
  void* p = in_crowd(64);
  on_thread([p] {
    call::free(p);
    call::free(p);
  });
}

// Two threads free the same block as near to the same moment as they can.
template <class First, class Second>
void race(First first, Second second) {
  std::atomic<int> ready = 0;
  const auto meet = [&ready] {
    for (++ready; ready < 2;) {
    }
  };
  auto other = [&] {
    meet();
    second();
  };
  Thread thread(other);
  meet();
  first();
  thread.join();
}

void racing_with_owner() {
  for (int i = 0; i < 20; ++i) {
    void* p = in_crowd(64, 2, 2);
    const auto release = [p] { call::free(p); };
    race(release, release);
  }
}

void racing_remotely() {
  for (int i = 0; i < 20; ++i) {
    void* p = in_crowd(64, 2, 2);
    const auto release = [p] { call::free(p); };
    on_thread([&] { race(release, release); });
  }
}

// ---- Through realloc, after reuse ---------------------------------------------------------------

void moved_by_realloc() {
  void* p = in_crowd(64);
  void* q = call::realloc(p, 4000);
  keep(q, 4000);
  call::free(p);
}

void realloc_of_freed() {
  void* p = in_crowd(64);
  call::free(p);
  void* q = call::realloc(p, 200);
  if (q != nullptr) keep(q, 200);
}

void realloc_to_nothing() {
  void* p = in_crowd(64);
  if (call::realloc(p, 0) != nullptr) end(kSkipped, "skipped: realloc(p, 0) does not free here");
  call::free(p);
}

void after_reuse() {
  void* p = in_crowd(64);
  call::free(p);
  void* q = call::malloc(64);
  for (int i = 0; i < 2000 && q != p; ++i) {
    keep(q, 64);
    q = call::malloc(64);
  }
  if (q != p) keep(q, 64);
  call::free(p);  // where p is q, nobody can tell this from the right free of q
}

constexpr Case kCases[] = {
    {"double_free_at_once", "double free", "free(p); free(p), 64 bytes among live blocks", at_once},
    {"double_free_lone", "double free", "free(p); free(p), the only block of its size", lone, 1000},
    {"double_free_after_other", "double free", "free(p); free(q); free(p)", after_other},
    {"double_free_after_200", "double free", "free(p), 200 other frees of that size, free(p)", after_200},
    {"double_free_malloc_between", "double free", "four freed, one handed out again, another one freed again",
     with_malloc_between},
    {"double_free_malloc_between_remote", "double free", "the same, freed again by another thread",
     with_malloc_between_remote},
    {"double_free_after_other_sizes", "double free", "free(p), blocks of other sizes made and freed, free(p)",
     after_other_sizes},
    {"double_free_small", "double free", "16 bytes, in the middle of 1,200 live blocks", small, 16},
    {"double_free_middle", "double free", "20 KiB", middle, kMiddle},
    {"double_free_large", "double free", "300 KiB", large, kLarge},
    {"double_free_huge", "double free", "40 MiB", huge, kHuge},
    {"double_free_aligned", "double free", "200 bytes aligned to 4096", aligned, 200},
    {"double_delete", "double free", "operator delete twice", deleted},
    {"double_free_then_other_thread", "double free", "freed by its thread, then by another",
     then_other_thread},
    {"double_free_after_other_thread", "double free", "freed by another thread, then by its own",
     after_other_thread},
    {"double_free_owner_ended", "double free", "a block whose thread has ended", owner_ended},
    {"double_free_twice_remotely", "double free", "by two threads one after the other, neither its own",
     twice_remotely},
    {"double_free_one_remote_thread", "double free", "twice by one thread that is not its own",
     twice_in_one_remote_thread},
    {"double_free_racing_with_owner", "double free", "by its thread and another at the same moment",
     racing_with_owner},
    {"double_free_racing_remotely", "double free", "by two threads at the same moment, one not its own",
     racing_remotely},
    {"double_free_moved_by_realloc", "double free", "realloc moves p, then free(p)", moved_by_realloc},
    {"double_free_realloc_of_freed", "double free", "free(p), then realloc(p, 200)", realloc_of_freed},
    {"double_free_realloc_to_nothing", "double free", "realloc(p, 0), then free(p)", realloc_to_nothing},
    {"double_free_after_reuse", "double free", "free(p), malloc gives the same block again, free(p)",
     after_reuse, 64, "malloc had handed the block out again, so the second free is valid"},
};

}  // namespace

const Cases double_free_cases{kCases};

}  // namespace battery
