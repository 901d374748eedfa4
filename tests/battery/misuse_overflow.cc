// Writes past the end or before the start of a live block. What the program destroys of its own
// contents is its own loss and repaired before the probation; what the allocator makes of it counts.
#include <string.h>

#include "misuse.h"

namespace battery {
namespace {

constexpr size_t kHuge = 40 * MiB;

// A live block whose request is just what it has room for.
char* exact_block(size_t near) {
  void* probe = call::malloc(near);
  const size_t size = call::usable(probe);
  keep(probe, size);
  char* p = static_cast<char*>(in_crowd(size));
  keep(p, size);
  return p;
}

void write(char* at, size_t length, int value = 'o') {
  call::free(call::malloc(1));  // the compiler cannot move the write past this
  memset(at, value, length);
  refill();
}

void past_end(size_t near, size_t length, int value = 'o') {
  char* p = exact_block(near);
  write(p + call::usable(p), length, value);
}

void nul() {
  past_end(24, 1, 0);
}
void past_usable() {
  past_end(64, 1);
}
void by_8() {
  past_end(64, 8);
}
void by_16() {
  past_end(64, 16);
}
void by_64() {
  past_end(64, 64);
}

void past_request() {
  char* p = static_cast<char*>(in_crowd(20));
  keep(p, 20);
  write(p + 20, 1);
}

void page_run() {
  char* p = static_cast<char*>(in_crowd(256, 100, 200));
  keep(p, 256);
  write(p + 256, 3 * 4096);
}

void large_page_run() {
  char* p = static_cast<char*>(in_crowd(300 * KiB, 2, 4));
  keep(p, 300 * KiB);
  write(p + call::usable(p), 3 * 4096);
}

void into_huge() {
  char* a = static_cast<char*>(call::malloc(kHuge));
  char* b = static_cast<char*>(call::malloc(kHuge));
  keep(a, kHuge);
  keep(b, kHuge);
  char* low = a < b ? a : b;
  write(low + call::usable(low), 8 * KiB);
}

void before_by(size_t length) {
  char* p = exact_block(64);
  write(p - length, length, 'u');
}

void before_1() {
  before_by(1);
}
void before_16() {
  before_by(16);
}

void before_huge() {
  char* p = static_cast<char*>(call::malloc(kHuge));
  keep(p, kHuge);
  write(p - 64, 64, 'u');
}

constexpr char kOver[] = "overflow";
constexpr char kUnder[] = "underflow";
constexpr char kContents[] = "it changes the next block; Hummock keeps nothing between blocks";
constexpr char kInside[] = "the byte is within the block's usable size";
constexpr char kGap[] = "it lands in memory that no block uses";

constexpr Case kCases[] = {
    {"overflow_nul", kOver, "one NUL past the room of a string", nul, 24, kContents},
    {"overflow_past_request", kOver, "one byte past malloc(20)", past_request, 20, kInside},
    {"overflow_past_usable", kOver, "one byte past the usable size", past_usable, 64, kContents},
    {"overflow_8", kOver, "8 bytes past the usable size", by_8, 64, kContents},
    {"overflow_16", kOver, "16 bytes past the usable size", by_16, 64, kContents},
    {"overflow_64", kOver, "64 bytes past the usable size", by_64, 64, kContents},
    {"overflow_page_run", kOver, "12 KiB past a block of 256 bytes", page_run, 256, kContents},
    {"overflow_large_page_run", kOver, "12 KiB past a block of 300 KiB", large_page_run, 300 * KiB,
     kContents},
    {"overflow_into_huge", kOver, "8 KiB past a block of 40 MiB, towards another", into_huge, kHuge, kGap},
    {"underflow_1", kUnder, "one byte before a block", before_1, 64, kContents},
    {"underflow_16", kUnder, "16 bytes before a block", before_16, 64, kContents},
    {"underflow_huge", kUnder, "64 bytes before a block of 40 MiB", before_huge, kHuge, kGap},
};

}  // namespace

const Cases overflow_cases{kCases};

}  // namespace battery
