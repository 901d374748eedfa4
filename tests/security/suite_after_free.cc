// Reads and writes of blocks that were freed, and reads of what was never written.
#include <string.h>

#include "maps.h"
#include "suite.h"

namespace battery {
namespace {

// ---- What a read finds ----------------------------------------------------------------------------

constexpr uint64_t kSecret = 0x7472657361657270;  // stands in every word of a block before its free

void fill_secret(void* p, size_t size) {
  for (size_t i = 0; i + 8 <= size; i += 8) memcpy(static_cast<char*>(p) + i, &kSecret, 8);
}

// What the `size` bytes at p give away, looked at as an attacker would.
void look(const void* p, size_t size) {
  bool contents = false;
  uint64_t words[2] = {};
  const uint64_t volatile* at = static_cast<const uint64_t*>(p);
  for (size_t i = 0; i < size / 8; ++i) {
    const uint64_t word = at[i];
    contents |= word == kSecret;
    if (i < 2) words[i] = word;
  }
  stage("later");
  const bool address = is_mapped(words[0]) || is_mapped(words[1]);
  stage(contents ? "saw old contents" : address ? "saw an address" : "saw nothing of use");
  if (contents && address) stage("saw an address");
}

// ---- Reads -----------------------------------------------------------------------------------------

template <size_t kSize>
void read_freed() {
  char* p = static_cast<char*>(block(kSize));
  char* q = static_cast<char*>(block(kSize));
  fill_secret(p, kSize);
  call::free(q);  // so that a link of p leads somewhere
  call::free(p);
  stage("read");
  look(p, kSize);
}

void read_reused() {
  char* p = static_cast<char*>(block(kSmall));
  call::free(p);
  char* q = static_cast<char*>(call::malloc(kSmall));
  fill_secret(q, kSmall);
  stage("read");
  look(p, kSmall);
}

template <size_t kSize>
void read_fresh() {
  char* p = static_cast<char*>(block(kSize));
  fill_secret(p, kSize);
  call::free(p);
  for (int i = 0; i < 4; ++i) {
    p = static_cast<char*>(call::malloc(kSize));
    stage("read");
    look(p, kSize);
  }
}

void read_grown() {
  char* p = static_cast<char*>(block(1000));
  fill_secret(p, 1000);
  call::free(p);
  p = static_cast<char*>(call::realloc(call::malloc(100), 1000));
  stage("read");
  look(p + 104, 896);
}

// ---- Writes ----------------------------------------------------------------------------------------

void write_to(void* p, size_t from, size_t length) {
  stage("write");
  memset(static_cast<char*>(p) + from, 'w', length);
  stage("later");
}

template <size_t kSize>
void write_freed() {
  void* p = block(kSize);
  call::free(p);
  write_to(p, 0, 64);
  go_on(kSize);
}

template <size_t kSize>
void write_freed_delayed() {
  void* others[many(kSize)];
  void* p = block(kSize);
  for (void*& other : others) other = call::malloc(kSize);
  call::free(p);
  for (void* other : others) call::free(other);
  write_to(p, 0, 64);
  go_on(kSize);
}

void write_reused() {
  void* p = block(kSmall);
  call::free(p);
  void* q = call::malloc(kSmall);
  write_to(p, 0, kSmall);
  stage("free");
  call::free(q);
  stage("later");
  go_on(kSmall);
}

void write_far() {
  void* p = block(kMedium);
  call::free(p);
  write_to(p, kMedium - 8, 8);
  go_on(kMedium);
}

void write_and_end() {
  void* p = block(kSmall);
  call::free(p);
  write_to(p, 0, kSmall);
}

void write_by_other_thread() {
  void* p = block(kSmall);
  on_thread([p] { call::free(p); });
  write_to(p, 0, kSmall);
  go_on(kSmall);
}

template <size_t kSize>
void write_after_realloc() {
  void* p = block(kSize);
  void* q = call::realloc(p, 8 * kSize);
  keep(q, 8 * kSize);
  if (p == q) end(kSkipped, "skipped: realloc did not move the block");
  write_to(p, 0, 64);
  go_on(kSize);
}

constexpr char kRead[] = "read after free";
constexpr char kWrite[] = "write after free";
constexpr char kFresh[] = "uninitialised read";
constexpr char kTrace[] = "a read leaves no trace";
constexpr char kPoison[] = "a read leaves no trace; Hummock has poisoned the freed bytes";
constexpr char kRest[] = "Hummock does not check these bytes of a free block";
constexpr char kNext[] = "the write goes to the new owner of the block";
constexpr char kUnmet[] = "the program ends before Hummock looks at the block again";
constexpr char kContents[] = "malloc promises nothing about contents";

constexpr Case kCases[] = {
    {"read_after_free_small", kRead, "64 bytes", read_freed<kSmall>, kSmall, kTrace, kPoison},
    {"read_after_free_medium", kRead, "3 KiB", read_freed<kMedium>, kMedium, kTrace, kPoison},
    {"read_after_free_large", kRead, "200 KiB", read_freed<kLarge>, kLarge, kTrace, kPoison},
    {"read_after_free_huge", kRead, "40 MiB", read_freed<kHuge>, kHuge, kTrace, kPoison},
    {"read_after_free_reused", kRead, "64 bytes, after malloc(64)", read_reused, kSmall, kTrace, kPoison},
    {"write_after_free_small", kWrite, "64 bytes", write_freed<kSmall>, kSmall},
    {"write_after_free_medium", kWrite, "64 bytes at the start of 3 KiB", write_freed<kMedium>, kMedium},
    {"write_after_free_large", kWrite, "64 bytes at the start of 200 KiB", write_freed<kLarge>, kLarge,
     kRest},
    {"write_after_free_huge", kWrite, "64 bytes at the start of 40 MiB", write_freed<kHuge>, kHuge},
    {"write_after_free_delayed_small", kWrite, "64 bytes, 200 frees later", write_freed_delayed<kSmall>,
     kSmall, kUnmet},
    {"write_after_free_delayed_medium", kWrite, "3 KiB, 200 frees later", write_freed_delayed<kMedium>,
     kMedium, kUnmet},
    {"write_after_free_reused", kWrite, "64 bytes, after malloc(64)", write_reused, kSmall, kNext},
    {"write_after_free_far", kWrite, "the last 8 bytes of 3 KiB", write_far, kMedium, kRest},
    {"write_after_free_and_end", kWrite, "64 bytes, then the program ends", write_and_end, kSmall, kUnmet},
    {"write_after_free_other_thread", kWrite, "64 bytes that another thread freed", write_by_other_thread,
     kSmall, kUnmet},
    {"write_after_realloc_small", kWrite, "64 bytes that realloc moved", write_after_realloc<kSmall>, kSmall},
    {"write_after_realloc_large", kWrite, "200 KiB that realloc moved", write_after_realloc<kLarge>, kLarge,
     kRest},
    {"uninitialised_small", kFresh, "64 bytes freed with a secret, malloc(64)", read_fresh<kSmall>, kSmall,
     kContents, kContents},
    {"uninitialised_medium", kFresh, "3 KiB freed with a secret, malloc(3 KiB)", read_fresh<kMedium>, kMedium,
     kContents, kContents},
    {"uninitialised_large", kFresh, "200 KiB freed with a secret, malloc(200 KiB)", read_fresh<kLarge>,
     kLarge, kContents, kContents},
    {"uninitialised_grown", kFresh, "1,000 bytes freed with a secret, realloc of 100 to 1,000", read_grown,
     1000, kContents, kContents},
};

}  // namespace

const Cases security_after_free{kCases};

}  // namespace battery
