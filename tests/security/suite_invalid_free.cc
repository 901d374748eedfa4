// Frees of what is no block's start, and of blocks in a wrong way.
#include <string.h>
#include <sys/mman.h>

#include "suite.h"

namespace battery {
namespace {

template <size_t kSize, ptrdiff_t kOffset>
void at_offset() {
  char* p = static_cast<char*>(block(kSize));
  keep_unchecked(p, kSize);
  wrong([p] { call::free(p + kOffset); });
  go_on(kSize);
}

// Frees inside neighbours, whose offsets add up to whole blocks: sums over the blocks in use stay right.
template <size_t kSize, size_t kOffset, int kTimes>
void adding_up() {
  char* p[kTimes];
  for (char*& b : p) {
    b = static_cast<char*>(call::malloc(kSize));
    keep_unchecked(b, kSize);
  }
  wrong([&p] {
    for (char* b : p) call::free(b + kOffset);
  });
  go_on(kSize);
}

template <size_t kSize, ptrdiff_t kOffset>
void realloc_at_offset() {
  char* p = static_cast<char*>(block(kSize));
  keep_unchecked(p, kSize);
  wrong([p] {
    void* q = call::realloc(p + kOffset, 2 * kSize);
    if (q != nullptr) keep(q, 2 * kSize);
  });
}

void stack() {
  alignas(16) char room[256];
  borrow(room, sizeof(room));
  wrong([&room] { call::free(room + 64); });
  go_on(kSmall);
  if (arguments[2] != nullptr) probation(kSmall);  // while the room is live
  _Exit(kPassed);
}

alignas(16) char static_room[4096];

void static_memory() {
  borrow(static_room, sizeof(static_room));
  wrong([] { call::free(static_room + 1024); });
}

void mapping() {
  void* room = mmap(nullptr, 1 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) end(kSkipped, "skipped: no address space");
  borrow(room, 1 * MiB);
  wrong([room] { call::free(static_cast<char*>(room) + 64 * KiB); });
}

template <size_t kSize, size_t kNamed>
void wrong_size() {
  void* p = call::new_one(kSize);
  wrong([p] { call::delete_sized(p, kNamed); });
}

void array_as_one() {
  void* p = call::new_array(kSmall);
  wrong([p] { call::delete_one(p); });
}

constexpr char kFamily[] = "invalid free";
constexpr char kMismatch[] = "size mismatch";
constexpr char kKind[] = "the default mode does not record which function allocated a block";

constexpr Case kCases[] = {
    {"invalid_free_near_plus_1", kFamily, "free(p + 1) of 64 bytes", at_offset<kSmall, 1>},
    {"invalid_free_near_minus_1", kFamily, "free(p - 1) of 64 bytes", at_offset<kSmall, -1>},
    {"invalid_free_near_plus_8", kFamily, "free(p + 8) of 64 bytes", at_offset<kSmall, 8>},
    {"invalid_free_near_minus_8", kFamily, "free(p - 8) of 64 bytes", at_offset<kSmall, -8>},
    {"invalid_free_near_plus_16", kFamily, "free(p + 16) of 64 bytes", at_offset<kSmall, 16>},
    {"invalid_free_near_minus_16", kFamily, "free(p - 16) of 64 bytes", at_offset<kSmall, -16>},
    {"invalid_free_near_medium", kFamily, "free(p + 16) of 3 KiB", at_offset<kMedium, 16>, kMedium},
    {"invalid_free_near_large", kFamily, "free(p + 16) of 200 KiB", at_offset<kLarge, 16>, kLarge},
    {"invalid_free_near_huge", kFamily, "free(p + 16) of 40 MiB", at_offset<kHuge, 16>, kHuge},
    {"invalid_free_unaligned_medium", kFamily, "free(p + 5) of 3 KiB", at_offset<kMedium, 5>, kMedium},
    {"invalid_free_unaligned_large", kFamily, "free(p + 1) of 200 KiB", at_offset<kLarge, 1>, kLarge},
    {"invalid_free_middle_small", kFamily, "free(p + 32) of 64 bytes", at_offset<kSmall, 32>},
    {"invalid_free_middle_medium", kFamily, "free(p + 1.5 KiB) of 3 KiB", at_offset<kMedium, kMedium / 2>,
     kMedium},
    {"invalid_free_middle_large", kFamily, "free(p + 128 KiB) of 200 KiB", at_offset<kLarge, 128 * KiB>,
     kLarge},
    {"invalid_free_middle_huge", kFamily, "free(p + 20 MiB) of 40 MiB", at_offset<kHuge, kHuge / 2>, kHuge},
    {"invalid_free_page_big", kFamily, "free(p + 4096) of 20 KiB", at_offset<kBig, 4096>, kBig},
    {"invalid_free_adding_up_64", kFamily, "free(p + 16) in four blocks of 64 bytes", adding_up<64, 16, 4>},
    {"invalid_free_adding_up_96", kFamily, "free(p + 32) in three blocks of 96 bytes", adding_up<96, 32, 3>,
     96},
    {"invalid_free_adding_up_1024", kFamily, "free(p + 512) in two blocks of 1 KiB", adding_up<1024, 512, 2>,
     1024},
    {"invalid_free_stack", kFamily, "a local variable", stack},
    {"invalid_free_static", kFamily, "a static variable", static_memory},
    {"invalid_free_mapping", kFamily, "memory from mmap", mapping},
    {"invalid_realloc_inner_small", kFamily, "realloc(p + 16) of 64 bytes", realloc_at_offset<kSmall, 16>},
    {"invalid_realloc_inner_large", kFamily, "realloc(p + 64 KiB) of 200 KiB",
     realloc_at_offset<kLarge, 64 * KiB>, kLarge},
    {"size_mismatch_small", kMismatch, "operator delete(p, 4096) of new(64)", wrong_size<64, 4096>},
    {"size_mismatch_large", kMismatch, "operator delete(p, 64) of new(200 KiB)", wrong_size<kLarge, 64>,
     kLarge},
    {"mismatch_array", kMismatch, "operator delete of new[]", array_as_one, kSmall, kKind},
};

}  // namespace

const Cases security_invalid_free{kCases};

}  // namespace battery
