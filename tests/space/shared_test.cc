// Spaces in shared memory: several processes, several addresses, and processes that are killed inside.
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "space_support.h"
#include "stepper.h"

namespace {

using support::Random;
using support::Space;
using support::space_of;

constexpr size_t kMiB = size_t{1} << 20;

hummock_space_options_t shared_space(uint32_t policy = HUMMOCK_SPACE_DENSE) {
  hummock_space_options_t options = space_of(8 * kMiB, HUMMOCK_SPACE_INHERIT, policy);
  options.shared = 1;
  return options;
}

hummock_space_options_t named_space() {
  static char name[64];
  snprintf(name, sizeof name, "/hummock-test-%d", getpid());
  hummock_space_options_t options = shared_space();
  options.name = name;
  return options;
}

int wait_for(pid_t child) {
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

// What a child of fork sees is its own handle: forget it and join anew, at another address.
hummock_space_t* join_again(int descriptor) {
  hummock_space_t* space = hummock_space_attach(descriptor);
  if (space == nullptr) _exit(10);
  return space;
}

}  // namespace

TEST_CASE("a list built by one process is read and freed by another, at another address") {
  Space space(shared_space());
  CHECK((space.achieved & HUMMOCK_SPACE_SHARED) != 0);
  const int descriptor = hummock_space_descriptor(space);
  REQUIRE(descriptor >= 0);
  struct Node {
    size_t next, value;
  };
  pid_t child = fork();
  if (child == 0) {
    hummock_space_t* mine = join_again(descriptor);
    size_t first = 0;
    for (size_t i = 0; i < 1000; ++i) {
      Node* node = static_cast<Node*>(hummock_space_malloc(mine, sizeof(Node) + i));
      *node = {first, i};
      first = hummock_space_offset(mine, node);
    }
    hummock_space_set_root(mine, first);
    hummock_space_destroy(mine);
    _exit(0);
  }
  CHECK(wait_for(child) == 0);
  size_t count = 0;
  for (size_t at = hummock_space_root(space); at != 0;) {
    Node* node = static_cast<Node*>(hummock_space_pointer(space, at));
    CHECK(node->value == 999 - count);
    ++count;
    at = node->next;
    hummock_space_free(space, node);
  }
  CHECK(count == 1000);
  CHECK(support::figures(space).live_blocks == 0);
  CHECK(support::is_sound(space));
}

TEST_CASE("by name") {
  const hummock_space_options_t options = named_space();
  {
    Space space(options);
    CHECK(hummock_space_create(&options, nullptr) == nullptr);
    CHECK(errno == EEXIST);
    hummock_space_t* again = hummock_space_open(options.name);
    REQUIRE(again != nullptr);
    void* block = hummock_space_malloc(again, 100);
    CHECK(hummock_space_contains(again, block) == 1);
    CHECK(hummock_space_contains(space, block) == 0);  // another address
    hummock_space_free(space, hummock_space_pointer(space, hummock_space_offset(again, block)));
    hummock_space_destroy(again);
  }
  CHECK(hummock_space_open(options.name) == nullptr);  // who made it took the name away
  CHECK(errno == ENOENT);
}

TEST_CASE("who joins may expand and shrink") {
  for (const uint32_t policy : {HUMMOCK_SPACE_DENSE, HUMMOCK_SPACE_PROVEN}) {
    CAPTURE(policy);
    hummock_space_options_t options = shared_space(policy);
    options.maximum = 32 * kMiB;
    options.expand = kMiB;
    options.populate = HUMMOCK_SPACE_TRY;
    Space space(options);
    hummock_space_t* joined = hummock_space_attach(hummock_space_descriptor(space));
    REQUIRE(joined != nullptr);
    CHECK(hummock_space_expand(joined, 100) == 0);
    CHECK(support::figures(space).bytes == 8 * kMiB + 4096);
    CHECK(support::is_sound(space));
    void* block = hummock_space_malloc(joined, 9 * kMiB);  // expands
    REQUIRE(block != nullptr);
    memset(block, 1, 9 * kMiB);
    CHECK(support::is_sound(space));
    CHECK((support::figures(space).achieved & HUMMOCK_SPACE_POPULATED) != 0);
    hummock_space_free(joined, block);
    const size_t before = support::figures(space).bytes;
    const size_t gone = hummock_space_shrink(joined, 32 * kMiB);
    CHECK(gone != 0);
    CHECK(support::figures(space).bytes == before - gone);
    CHECK(hummock_space_expand(space, 32 * kMiB - support::figures(space).bytes) == 0);
    CHECK(support::figures(joined).bytes == 32 * kMiB);
    CHECK(support::is_sound(joined));
    hummock_space_destroy(joined);
  }
}

TEST_CASE("a child that destroys its copy leaves the name") {
  const hummock_space_options_t options = named_space();
  Space space(options);
  pid_t child = fork();
  if (child == 0) {
    hummock_space_destroy(space);
    _exit(0);
  }
  CHECK(wait_for(child) == 0);
  hummock_space_t* again = hummock_space_open(options.name);
  CHECK(again != nullptr);
  hummock_space_destroy(again);
}

TEST_CASE("what is no space is not joined") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(hummock_space_attach(ends[0]) == nullptr);
  CHECK(errno == EINVAL);
  FILE* file = tmpfile();
  REQUIRE(ftruncate(fileno(file), 65536) == 0);
  CHECK(hummock_space_attach(fileno(file)) == nullptr);
  CHECK(errno == EINVAL);
  fclose(file);
  CHECK(hummock_space_attach(-1) == nullptr);
  CHECK(errno == EBADF);
}

TEST_CASE("many processes at once") {
  support::HangGuard guard(850);
  Space space(shared_space());
  const int descriptor = hummock_space_descriptor(space);
  std::vector<pid_t> children;
  for (uint64_t i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      hummock_space_t* mine = join_again(descriptor);
      Random random(support::run_seed() + i);
      std::vector<char*> blocks;
      for (int step = 0; step < 50000; ++step) {
        if (blocks.size() < 200 && random.one_in(2)) {
          char* p = static_cast<char*>(hummock_space_malloc(mine, 16 + random.below(2000)));
          if (p == nullptr) continue;
          p[0] = static_cast<char>(i);
          blocks.push_back(p);
        } else if (!blocks.empty()) {
          if (blocks.back()[0] != static_cast<char>(i)) _exit(11);
          hummock_space_free(mine, blocks.back());
          blocks.pop_back();
        }
      }
      for (char* p : blocks) hummock_space_free(mine, p);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  CHECK(support::figures(space).live_blocks == 0);
  CHECK(support::is_sound(space));
}

namespace {

// A child is stopped after `steps` instructions of a call and killed there.
bool kill_inside(hummock_space_t* space, int descriptor, size_t steps, int call) {
  const pid_t child = fork();
  if (child == 0) {
    hummock_space_t* mine = join_again(descriptor);
    // Ranges free before and behind, so that the call joins and splits.
    void* a = hummock_space_malloc(mine, 200);
    void* p = hummock_space_malloc(mine, 3000);
    void* b = hummock_space_malloc(mine, 500);
    void* wall = hummock_space_malloc(mine, 16);
    hummock_space_free(mine, a);
    hummock_space_free(mine, b);
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(12);
    raise(SIGTRAP);
    if (call == 0) hummock_space_free(mine, p);
    if (call == 1) p = hummock_space_malloc(mine, 90);
    if (call == 2) p = hummock_space_realloc(mine, p, 3300);
    if (call == 3) p = hummock_space_realloc(mine, p, 40);
    if (call == 4) p = hummock_space_memalign(mine, 512, 700);
    hummock_space_free(mine, wall);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSTOPPED(status));
  for (size_t i = 0; i < steps; ++i) {
    ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) return false;  // it came to its end
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  // Whoever comes next finds the space usable.
  void* block = hummock_space_malloc(space, 1000);
  CHECK(block != nullptr);
  hummock_space_free(space, block);
  CHECK(support::is_sound(space));
  return true;
}

}  // namespace

TEST_CASE("killed after every eighth instruction of a call, the space is repaired") {
  support::HangGuard guard(850);
  for (const uint32_t policy : {HUMMOCK_SPACE_DENSE, HUMMOCK_SPACE_PROVEN}) {
    for (int call = 0; call < 5; ++call) {
      CAPTURE(call);
      Space space(shared_space(policy));
      const int descriptor = hummock_space_descriptor(space);
      void* mine = hummock_space_malloc(space, 5000);
      support::fill(mine, 42, 5000);
      // The first steps are the way back from raise().
      size_t steps = 30 + support::run_seed() % 8;
      while (steps < 900 && kill_inside(space, descriptor, steps, call)) steps += 8;
      const hummock_space_stats_t stats = support::figures(space);
      CHECK(stats.recoveries >= 6);
      CHECK(stats.broken == 0);
      CHECK(support::intact(mine, 42, 5000));
      hummock_space_free(space, mine);
      CHECK(support::is_sound(space));
    }
  }
}

TEST_CASE("killed at any time under load") {
  support::HangGuard guard(850);
  Space space(shared_space());
  const int descriptor = hummock_space_descriptor(space);
  Random random(support::run_seed());
  for (int round = 0; round < 60; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      hummock_space_t* mine = join_again(descriptor);
      for (Random r(static_cast<uint64_t>(round));;) {
        void* p = hummock_space_malloc(mine, r.size_up_to(3000));
        void* q = hummock_space_malloc(mine, r.size_up_to(3000));
        hummock_space_free(mine, p);
        hummock_space_free(mine, q);
      }
    }
    usleep(static_cast<useconds_t>(1000 + random.below(3000)));
    kill(child, SIGKILL);
    wait_for(child);
    void* block = hummock_space_malloc(space, 1000);
    CHECK(block != nullptr);
    hummock_space_free(space, block);
    CHECK(support::is_sound(space));
  }
  const hummock_space_stats_t stats = support::figures(space);
  MESSAGE("repaired ", stats.recoveries, " times, ", stats.live_blocks, " blocks of the dead are left");
  CHECK(stats.live_blocks <= 120);
}
