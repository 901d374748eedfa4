// Memory runs short: NULL and ENOMEM, what is live stays as it was, and it goes on when some is freed.
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "robust.h"

namespace battery {
namespace {

void set_limit(int which, size_t bytes) {
  const struct rlimit limit = {bytes, bytes};
  CHECK(setrlimit(static_cast<__rlimit_resource>(which), &limit) == 0);
}

size_t address_space_in_use() {
  size_t pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == nullptr || fscanf(file, "%zu", &pages) != 1) end(kSkipped, "skipped: no /proc/self/statm");
  fclose(file);
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

struct Chain {
  Chain* next;
  size_t size;
};

// Blocks of `size` until there are no more, at most `most` bytes in all.
Chain* use_up(size_t size, size_t most, size_t* count) {
  Chain* all = nullptr;
  *count = 0;
  while (*count * size < most) {
    errno = 0;
    Chain* block = static_cast<Chain*>(call::malloc(size));
    if (block == nullptr) {
      CHECK(errno == ENOMEM);
      return all;
    }
    memset(block, static_cast<int>(*count), std::min<size_t>(size, 4096));
    *block = {all, ++*count};
    all = block;
  }
  return all;
}

void check_chain(const Chain* block, size_t size) {
  constexpr size_t kHead = sizeof(Chain);
  for (; block != nullptr; block = block->next) {
    const char* bytes = reinterpret_cast<const char*>(block);
    check_filled(bytes + kHead, std::min<size_t>(size, 4096) - kHead, static_cast<int>(block->size - 1));
  }
}

void free_chain(Chain* block) {
  while (block != nullptr) {
    Chain* next = block->next;
    call::free(block);
    block = next;
  }
}

// Everything there is of one size, three times; afterwards another size has to fit.
void exhaust(size_t size, size_t least_share) {
  const size_t room = 300 * MiB;
  set_limit(RLIMIT_AS, address_space_in_use() + room);
  size_t first = 0;
  for (int round = 0; round < 3; ++round) {
    size_t count = 0;
    Chain* all = use_up(size, 4 * room, &count);
    check_chain(all, size);
    errno = 0;
    CHECK(call::malloc(room) == nullptr && errno == ENOMEM);
    free_chain(all);
    if (round == 0) first = count;
    if (has_ceilings()) CHECK(count * size >= room * least_share / 100 && count >= first * 9 / 10);
    call::free(filled(100, 'f'));
    call::free(filled(10000, 'f'));
    if (has_ceilings()) call::free(filled(1 * MiB, 'f'));
  }
}

void address_space_small() {
  exhaust(64, 60);
}
void address_space_middle() {
  exhaust(20 * KiB, 60);
}
void address_space_large() {
  exhaust(500 * KiB, 60);
}
void address_space_huge() {
  exhaust(20 * MiB, 20);
}

void failing_realloc_and_calloc() {
  char* p = filled(1 * MiB, 'p');
  char* q = filled(1000, 'q');
  set_limit(RLIMIT_AS, address_space_in_use() + 40 * MiB);
  errno = 0;
  CHECK(call::realloc(p, 500 * MiB) == nullptr && errno == ENOMEM);
  errno = 0;
  CHECK(call::calloc(500, MiB) == nullptr && errno == ENOMEM);
  errno = 0;
  CHECK(call::memalign(256 * MiB, 300 * MiB) == nullptr && errno == ENOMEM);
  void* out = &out;
  CHECK(call::posix_memalign(&out, 64, 500 * MiB) == ENOMEM && out == &out);
  size_t count = 0;
  Chain* all = use_up(200, 100 * MiB, &count);
  errno = 0;
  void* grown = call::realloc(q, 39 * MiB);
  CHECK(grown == nullptr && errno == ENOMEM);
  check_filled(p, 1 * MiB, 'p');
  check_filled(q, 1000, 'q');
  free_chain(all);
  call::free(p);
  call::free(q);
  exercise(1);
}

// What was freed, and is kept for the next of its size, gives way to what does not fit beside it.
void freed_gives_way() {
  set_limit(RLIMIT_AS, address_space_in_use() + 1000 * MiB);
  void* held = call::malloc(400 * MiB);
  CHECK(held != nullptr);
  for (int i = 0; i < 3; ++i) {
    call::free(call::malloc(200 * MiB));
    void* large = call::malloc(500 * MiB);
    if (has_ceilings()) CHECK(large != nullptr);
    call::free(large);
  }
  call::free(call::malloc(200 * MiB));
  size_t count = 0;
  Chain* all = use_up(2 * MiB, 500 * MiB, &count);
  if (has_ceilings()) CHECK(count >= 200);
  check_chain(all, 2 * MiB);
  free_chain(all);
  call::free(held);
}

void operator_new_at_limit() {
  set_limit(RLIMIT_AS, address_space_in_use() + 64 * MiB);
  size_t count = 0;
  Chain* all = use_up(3000, 400 * MiB, &count);
  bool thrown = false;
  try {
    call::free(call::new_one(60 * MiB));
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  CHECK(thrown);
  free_chain(all);
  exercise(2);
}

void address_space_threads() {
  set_limit(RLIMIT_AS, address_space_in_use() + 400 * MiB);
  auto work = [] {
    for (size_t size : {64, 3000, 100000}) {
      size_t count = 0;
      Chain* all = use_up(size, 1024 * MiB, &count);
      check_chain(all, size);
      free_chain(all);
    }
  };
  Thread threads[] = {Thread(work, 256 * KiB), Thread(work, 256 * KiB), Thread(work, 256 * KiB),
                      Thread(work, 256 * KiB)};
  for (Thread& thread : threads) thread.join();
  if (has_ceilings()) malloc_trim(0);
  exercise(3);
}

void data_limit() {
  set_limit(RLIMIT_DATA, 200 * MiB);
  for (size_t size : {64, 20000, 3000000}) {
    size_t count = 0;
    Chain* all = use_up(size, 1024 * MiB, &count);
    CHECK(count * size < 300 * MiB);
    check_chain(all, size);
    free_chain(all);
    exercise(4);
  }
}

// ---- A limit that is there from the start ----------------------------------------------------------

void start_with_limit(const char* name, size_t limit) {
  if (getenv("BATTERY_AGAIN") == nullptr) {
    setenv("BATTERY_AGAIN", "1", 1);
    set_limit(RLIMIT_AS, limit);
    run_again(name);
    end(kFailed, "cannot run again: %s", strerror(errno));
  }
  exercise(5);
  on_thread([] { exercise(6); }, 256 * KiB);
  size_t count = 0;
  Chain* all = use_up(1000, limit / 2, &count);
  check_chain(all, 1000);
  dprintf(STDERR_FILENO, "note: %zu MiB of blocks\n", count * 1000 / MiB);
  CHECK(count * 1000 >= limit / (limit < 128 * MiB ? 8 : 4));
  free_chain(all);
  exercise(7);
}

void start_64m() {
  start_with_limit("start_limit_64m", 64 * MiB);
}
void start_256m() {
  start_with_limit("start_limit_256m", 256 * MiB);
}
void start_1g() {
  start_with_limit("start_limit_1g", 1024 * MiB);
}

void start_4g() {
  if (getenv("BATTERY_AGAIN") == nullptr) {
    setenv("BATTERY_AGAIN", "1", 1);
    set_limit(RLIMIT_AS, size_t{4000000} * KiB);
    run_again("start_limit_4g");
  }
  exercise(5);
  on_thread([] { exercise(6); });
  call::free(filled(200 * MiB, 'g'));
}

// ---- The number of mappings ------------------------------------------------------------------------

struct Maps {
  char* from;
  size_t bytes;
};

// Splits a mapping into as many as the kernel allows.
Maps use_up_maps() {
  constexpr size_t kPage = 4096;
  const size_t bytes = size_t{1} << 30;
  void* room = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(room != MAP_FAILED);
  char* from = static_cast<char*>(room);
  for (size_t at = kPage; at < bytes; at += 2 * kPage) {
    if (mprotect(from + at, kPage, PROT_READ) != 0) return {from, bytes};
  }
  end(kSkipped, "skipped: more mappings are allowed than this can make");
}

void map_count_exhausted() {
  char* large = filled(20 * MiB, 'l');
  char* small = filled(1000, 's');
  const Maps maps = use_up_maps();
  for (size_t size : {size_t{100}, 10 * KiB, 400 * KiB, 3 * MiB, 40 * MiB, 100 * MiB}) {
    for (int i = 0; i < 20; ++i) {
      errno = 0;
      char* p = static_cast<char*>(call::malloc(size));
      CHECK(p != nullptr || errno == ENOMEM);
      if (p == nullptr) continue;
      memset(p, 'm', size);
      char* q = static_cast<char*>(call::realloc(p, 2 * size));
      check_filled(q == nullptr ? p : q, size, 'm');
      call::free(q == nullptr ? p : q);
    }
  }
  malloc_trim(0);
  check_filled(large, 20 * MiB, 'l');
  check_filled(small, 1000, 's');
  CHECK(munmap(maps.from, maps.bytes) == 0);
  call::free(large);
  call::free(small);
  call::free(filled(100 * MiB, 'a'));
  exercise(8);
}

void free_keeps_errno_at_map_limit() {
  constexpr size_t kSizes[] = {100, 10 * KiB, 400 * KiB, 3 * MiB, 20 * MiB, 40 * MiB};
  char* p[6][6];
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) p[i][j] = filled(kSizes[j], 'e');
  }
  const Maps maps = use_up_maps();
  for (auto& row : p) {
    for (char* block : row) {
      errno = 4321;
      call::free(block);
      CHECK(errno == 4321);
    }
  }
  CHECK(munmap(maps.from, maps.bytes) == 0);
  exercise(9);
}

// glibc and others may map each large block: thousands of them must not use the count up.
void many_large_blocks() {
  static char* p[3000];
  for (char*& block : p) {
    block = static_cast<char*>(call::malloc(400 * KiB));
    CHECK(block != nullptr);
    block[0] = 'L';
  }
  for (size_t i = 0; i < 3000; i += 2) call::free(p[i]);
  size_t lines = 0;
  FILE* file = fopen("/proc/self/maps", "r");
  if (file == nullptr) end(kSkipped, "skipped: no /proc/self/maps");
  for (int c; (c = getc(file)) != EOF;) lines += c == '\n';
  fclose(file);
  dprintf(STDERR_FILENO, "note: %zu mappings\n", lines);
  if (has_ceilings()) CHECK(lines < 10000);
  for (size_t i = 1; i < 3000; i += 2) call::free(p[i]);
}

constexpr char kFamily[] = "limits";

constexpr Case kCases[] = {
    {"address_space_small", kFamily, "RLIMIT_AS, all used up by 64 bytes at a time", address_space_small},
    {"address_space_middle", kFamily, "by 20 KiB at a time", address_space_middle},
    {"address_space_large", kFamily, "by 500 KiB at a time", address_space_large},
    {"address_space_huge", kFamily, "by 20 MiB at a time", address_space_huge},
    {"address_space_threads", kFamily, "by four threads", address_space_threads},
    {"failing_realloc_and_calloc", kFamily, "every function fails rightly at the limit",
     failing_realloc_and_calloc},
    {"freed_gives_way", kFamily, "memory kept after free, no room beside it", freed_gives_way},
    {"operator_new_at_limit", kFamily, "bad_alloc can be thrown with nothing left", operator_new_at_limit},
    {"data_limit", kFamily, "RLIMIT_DATA", data_limit},
    {"start_limit_64m", kFamily, "started under ulimit -v of 64 MiB", start_64m},
    {"start_limit_256m", kFamily, "of 256 MiB", start_256m},
    {"start_limit_1g", kFamily, "of 1 GiB", start_1g},
    {"start_limit_4g", kFamily, "of 4000000 KiB, with threads of full stacks", start_4g},
    {"map_count_exhausted", kFamily, "no more mappings are allowed, then some again", map_count_exhausted},
    {"free_keeps_errno_at_map_limit", kFamily, "munmap fails inside free", free_keeps_errno_at_map_limit},
    {"many_large_blocks", kFamily, "3,000 blocks of 400 KiB, every second freed: few mappings",
     many_large_blocks},
};

}  // namespace

const Cases limit_cases{kCases};

}  // namespace battery
