// Writes past the end of a live block, or before its start.
#include <string.h>

#include "suite.h"

namespace battery {
namespace {

// The program's own damage (contents of its other blocks) is repaired; what the allocator makes of its
// own is looked at.
void damage(char* at, size_t length) {
  stage("write");
  memset(at, 'o', length);
  stage("later");
  refill();
}

// A block whose request is just what it has room for.
template <size_t kSize>
char* exact_block() {
  void* probe = call::malloc(kSize);
  const size_t size = call::usable(probe);
  keep(probe, size);
  return static_cast<char*>(block(size));
}

void release(void* p, size_t size) {
  stage("free");
  call::free(p);
  stage("later");
  go_on(size);
}

template <size_t kSize, size_t kLength>
void over() {
  char* p = exact_block<kSize>();
  damage(p + call::usable(p), kLength);
  release(p, kSize);
}

// The block lives until the end.
template <size_t kSize, size_t kLength>
void over_kept() {
  char* p = exact_block<kSize>();
  keep(p, call::usable(p));
  damage(p + call::usable(p), kLength);
}

// Into a neighbour that is free.
template <size_t kSize, size_t kLength>
void over_into_free() {
  char* blocks[8];
  for (char*& b : blocks) b = exact_block<kSize>();
  char* p = blocks[0];
  char* next = blocks[1];
  for (char* b : blocks) {  // the two nearest to each other
    for (char* c : blocks) {
      if (c > b && (next <= p || c - b < next - p)) p = b, next = c;
    }
  }
  for (char* b : blocks) {
    if (b != p) call::free(b);
  }
  damage(p + call::usable(p), kLength);
  release(p, kSize);
}

template <size_t kSize, size_t kLength>
void under() {
  char* p = exact_block<kSize>();
  damage(p - kLength, kLength);
  release(p, kSize);
}

template <size_t kLength>
void of_nothing() {
  char* p = static_cast<char*>(call::malloc(0));
  for (int i = 0; i < 8; ++i) keep(call::malloc(1), 1);
  damage(p, kLength);
  release(p, 0);
}

void past_request() {
  char* p = static_cast<char*>(block(50));
  damage(p + 50, 1);
  release(p, 50);
}

constexpr char kOver[] = "overflow";
constexpr char kUnder[] = "underflow";
constexpr char kContents[] = "it changes other blocks; Hummock keeps nothing between them";
constexpr char kInside[] = "the byte is within the block's usable size";

constexpr Case kCases[] = {
    {"overflow_slack_small", kOver, "1 byte past malloc(50)", past_request, 50, kInside},
    {"overflow_1_small", kOver, "1 byte past 64 bytes", over<kSmall, 1>, kSmall, kContents},
    {"overflow_8_small", kOver, "8 bytes past 64 bytes", over<kSmall, 8>, kSmall, kContents},
    {"overflow_16_small", kOver, "16 bytes past 64 bytes", over<kSmall, 16>, kSmall, kContents},
    {"overflow_32_small", kOver, "32 bytes past 64 bytes", over<kSmall, 32>, kSmall, kContents},
    {"overflow_64_small", kOver, "64 bytes past 64 bytes", over<kSmall, 64>, kSmall, kContents},
    {"overflow_128_small", kOver, "128 bytes past 64 bytes", over<kSmall, 128>, kSmall, kContents},
    {"overflow_1k_small", kOver, "1 KiB past 64 bytes", over<kSmall, 1 * KiB>, kSmall, kContents},
    {"overflow_4k_small", kOver, "4 KiB past 64 bytes", over<kSmall, 4 * KiB>, kSmall, kContents},
    {"overflow_64k_small", kOver, "64 KiB past 64 bytes", over<kSmall, 64 * KiB>, kSmall, kContents},
    {"overflow_1m_small", kOver, "1 MiB past 64 bytes", over<kSmall, 1 * MiB>, kSmall, kContents},
    {"overflow_1_medium", kOver, "1 byte past 3 KiB", over<kMedium, 1>, kMedium, kContents},
    {"overflow_8_medium", kOver, "8 bytes past 3 KiB", over<kMedium, 8>, kMedium, kContents},
    {"overflow_64_medium", kOver, "64 bytes past 3 KiB", over<kMedium, 64>, kMedium, kContents},
    {"overflow_1k_medium", kOver, "1 KiB past 3 KiB", over<kMedium, 1 * KiB>, kMedium, kContents},
    {"overflow_4k_medium", kOver, "4 KiB past 3 KiB", over<kMedium, 4 * KiB>, kMedium, kContents},
    {"overflow_1_large", kOver, "1 byte past 200 KiB", over<kLarge, 1>, kLarge, kContents},
    {"overflow_8_large", kOver, "8 bytes past 200 KiB", over<kLarge, 8>, kLarge, kContents},
    {"overflow_4k_large", kOver, "4 KiB past 200 KiB", over<kLarge, 4 * KiB>, kLarge, kContents},
    {"overflow_64k_large", kOver, "64 KiB past 200 KiB", over<kLarge, 64 * KiB>, kLarge, kContents},
    {"overflow_1_huge", kOver, "1 byte past 40 MiB", over<kHuge, 1>, kHuge, kContents},
    {"overflow_4k_huge", kOver, "4 KiB past 40 MiB", over<kHuge, 4 * KiB>, kHuge, kContents},
    {"overflow_1m_huge", kOver, "1 MiB past 40 MiB", over<kHuge, 1 * MiB>, kHuge, kContents},
    {"overflow_1_kept_small", kOver, "1 byte past 64 bytes, never freed", over_kept<kSmall, 1>, kSmall,
     kContents},
    {"overflow_64_kept_small", kOver, "64 bytes past 64 bytes, never freed", over_kept<kSmall, 64>, kSmall,
     kContents},
    {"overflow_1_kept_medium", kOver, "1 byte past 3 KiB, never freed", over_kept<kMedium, 1>, kMedium,
     kContents},
    {"overflow_4k_kept_large", kOver, "4 KiB past 200 KiB, never freed", over_kept<kLarge, 4 * KiB>, kLarge,
     kContents},
    {"overflow_8_into_free", kOver, "8 bytes past 64 bytes, into a free block", over_into_free<kSmall, 8>,
     kSmall},
    {"overflow_64_into_free", kOver, "64 bytes past 64 bytes, into a free block", over_into_free<kSmall, 64>,
     kSmall},
    {"overflow_16_into_free_medium", kOver, "16 bytes past 3 KiB, into a free block",
     over_into_free<kMedium, 16>, kMedium},
    {"overflow_1_zero_size", kOver, "1 byte written to malloc(0)", of_nothing<1>, kTiny, kInside},
    {"overflow_32_zero_size", kOver, "32 bytes written to malloc(0)", of_nothing<32>, kTiny, kContents},
    {"underflow_1_small", kUnder, "1 byte before 64 bytes", under<kSmall, 1>, kSmall, kContents},
    {"underflow_8_small", kUnder, "8 bytes before 64 bytes", under<kSmall, 8>, kSmall, kContents},
    {"underflow_16_small", kUnder, "16 bytes before 64 bytes", under<kSmall, 16>, kSmall, kContents},
    {"underflow_64_small", kUnder, "64 bytes before 64 bytes", under<kSmall, 64>, kSmall, kContents},
    {"underflow_1_medium", kUnder, "1 byte before 3 KiB", under<kMedium, 1>, kMedium, kContents},
    {"underflow_16_large", kUnder, "16 bytes before 200 KiB", under<kLarge, 16>, kLarge, kContents},
    {"underflow_64_huge", kUnder, "64 bytes before 40 MiB", under<kHuge, 64>, kHuge, kContents},
};

}  // namespace

const Cases security_overflow{kCases};

}  // namespace battery
