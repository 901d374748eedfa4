// A program's own handler of bad pointers: called in time, with nothing changed and no lock held.
#include <doctest/doctest.h>
#include <errno.h>
#include <hummock/hummock.h>
#include <setjmp.h>
#include <string.h>

#include <string>
#include <thread>

#include "support/capture.h"
#include "support/figures.h"

namespace {

using support::contains;

// The options are read at the first call that may allocate.
bool checked() {
  hummock_free(hummock_malloc(1));
  return support::checked();
}

jmp_buf way_out;
std::string said;
int static_data[64];

void leave(const char* message) {
  said = message;
  longjmp(way_out, 1);
}

// What the handler was told while `call` ran; "" when it was not called.
template <class Call>
std::string message_of(Call call) {
  said.clear();
  if (setjmp(way_out) == 0) call();
  return said;
}

char* block_of_another_thread(size_t size) {
  char* block = nullptr;
  std::thread([&] { block = static_cast<char*>(hummock_malloc(size)); }).join();
  return block;
}

bool aborts_with(void (*handler)(const char*)) {
  return support::ending_of([=] {
           hummock_on_bad_pointer(handler);
           hummock_free(static_data);
         })
      .aborted;
}

// As if this thread had looked at the block before the other thread's free, and freed it after that.
void free_with_another(char* block, size_t size) {
  std::thread([=] { hummock_free(block); }).join();
  memset(block, 0, size < 16 ? size : 16);
  hummock_free(block);
}

char* tiny_block() {
  return static_cast<char*>(hummock_realloc(hummock_malloc(40), 8));
}

}  // namespace

TEST_CASE("checked mode keeps its own reports") {
  if (!checked()) return;
  CHECK(hummock_on_bad_pointer(leave) == EPERM);
  CHECK(hummock_on_bad_pointer(nullptr) == 0);
}

TEST_CASE("the handler hears of pointers that are no blocks") {
  if (checked()) return;
  REQUIRE(hummock_on_bad_pointer(leave) == 0);
  CHECK(contains(message_of([] { hummock_free(static_data); }), "free("));
  CHECK(contains(message_of([] { hummock_realloc(static_data, 10); }), "realloc("));
  CHECK(message_of([] { hummock_usable_size(static_data); }) != "");

  char* large = static_cast<char*>(hummock_malloc(300000));
  CHECK(contains(message_of([&] { hummock_free(large + 64); }), "points 64 bytes into a block"));
  hummock_free(large);

  char* small = static_cast<char*>(hummock_malloc(100));
  CHECK(contains(message_of([&] { hummock_usable_size(small + 8); }), "points 8 bytes into a block"));
  CHECK(contains(message_of([&] { hummock_realloc(small + 8, 500); }), "points 8 bytes into a block"));
  CHECK(hummock_usable_size(small) >= 100);
  hummock_free(small);

  char* theirs = block_of_another_thread(100);
  CHECK(contains(message_of([&] { hummock_free(theirs + 8); }), "points 8 bytes into a block"));
  hummock_free(theirs);
  hummock_on_bad_pointer(nullptr);
}

TEST_CASE("a block of another heap is told as such, unless it is free") {
  if (checked()) return;
  REQUIRE(hummock_on_bad_pointer(leave) == 0);
  hummock_heap_t* heap = hummock_heap_create();
  hummock_heap_t* other = hummock_heap_create();
  for (const size_t size : {size_t{100}, size_t{300000}, size_t{40} << 20}) {
    INFO(size);
    void* const its[] = {hummock_heap_malloc(other, size), hummock_malloc(size)};
    for (void* block : its) {
      CHECK(contains(message_of([&] { hummock_heap_free(heap, block); }), "the block is of another heap"));
      CHECK(contains(message_of([&] { hummock_heap_realloc(heap, block, 5); }),
                     "the block is of another heap"));
    }
    hummock_free(its[0]);
    hummock_free(its[1]);
    CHECK(message_of([&] { hummock_heap_free(heap, its[0]); }) != "");
  }
  hummock_heap_destroy(other);
  hummock_heap_destroy(heap);
  hummock_on_bad_pointer(nullptr);
}

TEST_CASE("any use of a heap that was destroyed, or never was one, is told by the name of the call") {
  if (checked()) return;
  REQUIRE(hummock_on_bad_pointer(leave) == 0);
  hummock_heap_t* heap = hummock_heap_create();
  hummock_heap_destroy(heap);
  void* block = hummock_malloc(4096);
  memset(block, 1, 4096);
  for (hummock_heap_t* none : {heap, static_cast<hummock_heap_t*>(block)}) {
    const auto told = [none](const char* call, auto use) {
      INFO(call);
      CHECK(contains(message_of([&] { use(none); }), std::string("hummock_heap_") + call + "(0x"));
      CHECK(contains(said, "there is no heap"));
    };
    told("malloc", [](hummock_heap_t* it) { (void)hummock_heap_malloc(it, SIZE_MAX); });
    told("calloc", [](hummock_heap_t* it) { (void)hummock_heap_calloc(it, SIZE_MAX, 2); });
    told("realloc", [](hummock_heap_t* it) { (void)hummock_heap_realloc(it, nullptr, 9); });
    told("memalign", [](hummock_heap_t* it) { (void)hummock_heap_memalign(it, 64, 9); });
    told("set_name", [](hummock_heap_t* it) { hummock_heap_set_name(it, "late"); });
    told("stats", [](hummock_heap_t* it) { support::figures(it); });
    told("walk", [](hummock_heap_t* it) {
      (void)hummock_heap_walk(
          it, [](void*, void*, size_t) { return 1; }, nullptr);
    });
    told("destroy", [](hummock_heap_t* it) { hummock_heap_destroy(it); });
  }
  hummock_free(block);
  hummock_on_bad_pointer(nullptr);
}

TEST_CASE("a heap that is destroyed twice is told, and handed out once") {
  if (checked()) return;
  REQUIRE(hummock_on_bad_pointer(leave) == 0);
  hummock_heap_t* heap = hummock_heap_create();
  hummock_heap_destroy(heap);
  const std::string message = message_of([&] { hummock_heap_destroy(heap); });
  CHECK(contains(message, "hummock_heap_destroy("));
  CHECK(contains(message, "there is no heap: destroyed before"));
  hummock_heap_t* first = hummock_heap_create();
  hummock_heap_t* second = hummock_heap_create();
  CHECK(first != second);
  hummock_heap_destroy(first);
  hummock_heap_destroy(second);
  hummock_on_bad_pointer(nullptr);
}

TEST_CASE("no lock is held when the handler leaves") {
  if (checked()) return;
  REQUIRE(hummock_on_bad_pointer(leave) == 0);
  hummock_heap_t* heap = hummock_heap_create();
  for (size_t size : {100, 300000}) {
    char* block = static_cast<char*>(hummock_heap_malloc(heap, size));
    CHECK(message_of([&] { hummock_heap_free(heap, block + 8); }) != "");
    CHECK(message_of([&] { hummock_free(block + 8); }) != "");
    CHECK(support::figures(heap).live_blocks == 1);
    hummock_heap_free(heap, block);
    CHECK(support::figures(heap).live_blocks == 0);
  }
  hummock_heap_destroy(heap);
  hummock_on_bad_pointer(nullptr);
}

TEST_CASE("the process aborts when the handler returns, and without one" * doctest::skip(checked())) {
  CHECK(aborts_with([](const char*) {}));
  CHECK(aborts_with(nullptr));
}

TEST_CASE("a block that its owner freed at the same time, and uses again, does not end its slab" *
          doctest::skip(checked())) {
  CHECK(support::ending_of([] {
          constexpr size_t kWholeSlab = 64 << 10;
          for (int i = 0; i < 4; ++i) {  // so that the thread keeps some
            void* first = hummock_malloc(kWholeSlab);
            hummock_free(hummock_malloc(kWholeSlab));
            hummock_free(first);
          }
          char* block = static_cast<char*>(hummock_malloc(kWholeSlab));
          free_with_another(block, kWholeSlab);
          for (int i = 0; i < 100; ++i) memset(hummock_malloc(kWholeSlab), 1, 64);
        }).aborted);
}

TEST_CASE("a block of 8 bytes that its owner freed at the same time is in no list twice" *
          doctest::skip(checked())) {
  CHECK(support::ending_of([] {
          std::thread([] {
            char* block = tiny_block();
            tiny_block();
            free_with_another(block, 8);
          }).join();  // what the thread leaves is looked at
        }).aborted);
}
