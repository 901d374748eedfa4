// All system calls that single calls of malloc and free make, also those that do not go through the table of
// the os layer: at most four in each, whatever somebody outside asks of the process, and whatever is due.
#include <dirent.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <hummock/hummock.h>
#include <hummock/page.h>
#include <time.h>

#include <string>
#include <thread>
#include <vector>

#include "base/options.h"
#include "modes/sampling.h"
#include "observe/page.h"
#include "os/os.h"
#include "space/stepper.h"
#include "support/figures.h"
#include "support/support.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr uint64_t kMostCalls = 4;
constexpr int kPatience = 20000;  // slow calls; against hangs alone

uint64_t clock_ms = 3'600'000;

// As somebody outside sees it: the newest page, or with `pid` that of this process. -1: none.
int find_page(uint32_t pid) {
  DIR* folder = opendir("/proc/self/fd");
  int found = -1;
  while (const dirent* each = readdir(folder)) {
    char link[64] = "";
    if (readlinkat(dirfd(folder), each->d_name, link, sizeof link - 1) < 0) continue;
    hummock_page_head_t head = {};
    const int fd = atoi(each->d_name);
    if (std::string(link) != "/memfd:hummock (deleted)" || pread(fd, &head, sizeof head, 0) != sizeof head)
      continue;
    if (head.magic == HUMMOCK_PAGE_MAGIC && head.pid == pid) found = fd;
  }
  closedir(folder);
  return found;
}

#define AT(field) offsetof(hummock_page_head_t, field)

uint32_t load(int page, size_t offset) {
  uint32_t word = 0;
  if (pread(page, &word, sizeof word, static_cast<off_t>(offset)) != sizeof word) _exit(3);
  return word;
}
template <class T>
void store(int page, size_t offset, T value) {
  if (pwrite(page, &value, sizeof value, static_cast<off_t>(offset)) != sizeof value) _exit(3);
}
void add_one(int page, size_t offset) {
  store(page, offset, load(page, offset) + 1);
}

std::vector<void*> kept;

// Pairs of large and of very large blocks, and small blocks that stay: slow calls of all kinds.
void slow_calls(int kind, int turn) {
  void* block = nullptr;
  const size_t sizes[] = {1000, 70'000, 3 * kMiB, 5000};
  const size_t size = sizes[turn % 4];
  stepper::counted(kind, [&] { block = hummock_malloc(size); });
  if (block == nullptr) _exit(3);
  if (turn % 4 == 0) return kept.push_back(block);
  stepper::counted(kind, [&] { hummock_free(block); });
  ++clock_ms;
}

template <class Done>
void call_until(int kind, Done done) {
  for (int turn = 0; !done(); ++turn) {
    if (turn == kPatience) _exit(static_cast<int>(10 + kind));
    slow_calls(kind, turn);
  }
}

enum Kind { kPage, kFigures, kTrim, kPercentage, kRenewed, kProfile, kOthers, kOwn, kInbox };
constexpr const char* kNames[] = {"a page of its own",
                                  "figures",
                                  "a trim",
                                  "a limit in percent",
                                  "that limit, in turn",
                                  "a profile",
                                  "last blocks of others' slabs",
                                  "last blocks of own slabs",
                                  "slabs that others emptied"};

void ask_for(int page, int kind, uint32_t request, uint32_t option, int64_t value) {
  store(page, AT(kind), request);
  store(page, AT(option), option);
  store(page, AT(value), value);
  add_one(page, AT(request));
  add_one(page, AT(asked));
  call_until(kind, [&] { return load(page, AT(answered)) == load(page, AT(request)); });
  if (load(page, AT(result)) != 0) _exit(4);
}

uint32_t option_called(const char* name) {
  uint32_t i = 0;
  while (strcmp(hummock::options::kTable[i].name, name) != 0) ++i;
  return i;
}

// Each other block of sizes up to a page was freed by another thread, and is due by time; free spans are,
// too.
void leave_much_to_do() {
  std::vector<void*> small, large;
  for (size_t i = 0; i < 40'000; ++i) small.push_back(hummock_malloc(i % 2 == 0 ? 2000 : 4096));
  for (size_t i = 0; i < 400; ++i) large.push_back(hummock_malloc(300'000));
  for (void* each : small) memset(each, 1, 1);
  std::thread([&] {
    for (size_t i = 0; i < small.size(); ++i)
      if (i / 4 % 2 == 0) hummock_free(small[i]);
    for (size_t i = 0; i < large.size(); i += 2) hummock_free(large[i]);
  }).join();
  clock_ms += 700;
}

void answer_all() {
  const int parents = find_page(static_cast<uint32_t>(getppid()));
  if (parents < 0) _exit(2);
  leave_much_to_do();
  const auto own = static_cast<uint32_t>(getpid());
  store(parents, AT(child), own);
  add_one(parents, AT(children));
  call_until(kPage, [&] { return find_page(own) >= 0; });
  const int page = find_page(own);
  add_one(page, AT(asked));
  call_until(kFigures, [&] { return load(page, AT(served)) == load(page, AT(asked)); });
  ask_for(page, kTrim, HUMMOCK_REQUEST_TRIM, 0, 0);
  leave_much_to_do();
  ask_for(page, kPercentage, HUMMOCK_REQUEST_SET, option_called("limit_soft"), -90);
  int calls = 0;
  call_until(kRenewed, [&] { return ++calls == 4000; });
  // As many bytes from sample to sample as may be: what a new stack's sample reads is not bounded.
  ask_for(page, kProfile, HUMMOCK_REQUEST_PROFILE, 0, hummock::modes::sampling::kMostMean);
}

// What is left over is little: the budget, what waits in span caches, and what one flush of others' blocks
// frees.
void check_dirty(int status) {
  if (support::figures().dirty > 16 * kMiB) _exit(status);
}

// Of each other slab one block is left in `last`, of the others all live: what becomes free are short runs.
constexpr size_t kSize = 2048, kSlabs = 4000;
std::vector<void*> last;
void fill_slabs() {
  std::vector<void*> blocks(kSlabs * 31);
  for (void*& each : blocks) each = hummock_malloc(kSize);
  const auto slot = [](const void* p) { return reinterpret_cast<uintptr_t>(p) >> 16; };
  last.clear();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (slot(blocks[i]) % 2 == 0) continue;
    const bool is_last = i + 1 == blocks.size() || slot(blocks[i + 1]) != slot(blocks[i]);
    is_last ? last.push_back(blocks[i]) : hummock_free(blocks[i]);
  }
}

void empty_slabs() {
  if (hummock_option_set("dirty_max", "8M") != 0) _exit(2);
  std::thread(fill_slabs).join();
  for (void* each : last) stepper::counted(kOthers, [&] { hummock_free(each); });
  check_dirty(5);
  fill_slabs();
  std::vector<void*> own(last.begin(), last.begin() + static_cast<ptrdiff_t>(last.size() / 2));
  for (void* each : own) stepper::counted(kOwn, [&] { hummock_free(each); });
  check_dirty(6);
  std::thread([&] {
    for (size_t i = own.size(); i < last.size(); ++i) hummock_free(last[i]);
  }).join();
  for (int i = 0; i < 20'000; ++i)
    stepper::counted(kInbox, [&] { hummock_malloc(kSize + static_cast<size_t>(i % 3) * 900); });
}

int read_clock(clockid_t, timespec* now) {
  now->tv_sec = static_cast<time_t>(clock_ms / 1000);
  now->tv_nsec = static_cast<long>(clock_ms % 1000 * 1'000'000);
  return 0;
}
const bool clock_is_ours = (hummock::os::read_clock = read_clock, true);

}  // namespace

void count(void (*work)(), int first, int last) {
  stepper::what = stepper::What::system_calls;
  stepper::Counts counts;
  const int status = stepper::run(work, &counts);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  for (int kind = first; kind <= last; ++kind) {
    const std::string name = kNames[kind];
    CAPTURE(name);
    MESSAGE(name << ": " << counts.calls[kind] << " calls, most system calls in one: " << counts.most[kind]
                 << ", in all: " << counts.sum[kind]);
    CHECK(counts.calls[kind] > 0);
    CHECK(counts.most[kind] <= kMostCalls);
  }
}

TEST_CASE("somebody asks a child of fork for a page, figures, a trim, a limit and a profile") {
  support::HangGuard guard(1200);
  hummock::observe::start_page();
  REQUIRE(find_page(static_cast<uint32_t>(getpid())) >= 0);
  {
    std::vector<void*> regions;  // mapped before anything is counted
    regions.reserve(100);
    for (int i = 0; i < 100; ++i) regions.push_back(hummock_malloc(3 * kMiB));
    for (void* each : regions) hummock_free(each);
  }
  count(answer_all, kPage, kProfile);
}

TEST_CASE("slabs become empty, many in one call, and what is free is too much and in short runs") {
  support::HangGuard guard(1200);
  count(empty_slabs, kOthers, kInbox);
}
