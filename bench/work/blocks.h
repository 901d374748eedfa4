// Blocks that say what they are: their size and a check stand at the start, a byte of the check at the end,
// and one byte of each page is written. Whoever frees one looks whether all is still there.
#pragma once
#include <stdlib.h>
#include <string.h>

#include "run.h"

constexpr size_t kLeast = 16;  // of a stamped block
constexpr size_t kPage = 4096;

struct Stamp {
  uint32_t size;
  uint32_t check;
};

inline uint32_t check_of(const char* block, size_t size) {
  return static_cast<uint32_t>(size) * 0x9e3779b1u ^
         static_cast<uint32_t>(reinterpret_cast<uintptr_t>(block) >> 4);
}

inline void stamp(char* block, size_t size) {
  const Stamp its = {static_cast<uint32_t>(size), check_of(block, size)};
  memcpy(block, &its, sizeof its);
  for (size_t at = kPage; at < size; at += kPage) block[at] = static_cast<char>(its.check);
  block[size - 1] = static_cast<char>(its.check);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_broken(const char* block) {
  fail(3, "the block at %p is not as it was written", static_cast<const void*>(block));
}
[[noreturn, gnu::cold, gnu::noinline]] inline void fail_memory(size_t size) {
  fail(3, "no memory for a block of %zu bytes", size);
}

// Checks a block and returns its size.
inline size_t stamped_size(const char* block) {
  Stamp its;
  memcpy(&its, block, sizeof its);
  if (its.check != check_of(block, its.size) || its.size < kLeast ||
      block[its.size - 1] != static_cast<char>(its.check))
    fail_broken(block);
  return its.size;
}

// A block that is there; nothing is written.
inline char* take(size_t size) {
  char* block = static_cast<char*>(malloc(size));
  if (block == nullptr) fail_memory(size);
  return block;
}

inline char* make_block(Worker& worker, size_t size) {
  char* block = take(size);
  stamp(block, size);
  worker.live_add(static_cast<int64_t>(size));
  return block;
}

// The same of a block that is about to be freed; a second owner would find its stamp gone.
inline size_t retire(char* block) {
  const size_t size = stamped_size(block);
  const Stamp gone = {0, 0};
  memcpy(block, &gone, sizeof gone);
  return size;
}

inline void drop_block(Worker& worker, char* block) {
  worker.live_add(-static_cast<int64_t>(retire(block)));
  free(block);
}

inline void drop_all(Worker& worker, char** blocks, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (blocks[i] != nullptr) drop_block(worker, blocks[i]);
    blocks[i] = nullptr;
  }
}

// A random permutation of 0 … count − 1.
inline void shuffle(Rng& rng, uint32_t* order, size_t count) {
  for (size_t i = 0; i < count; ++i) order[i] = static_cast<uint32_t>(i);
  for (size_t i = count; i > 1; --i) {
    const size_t other = rng.below(i);
    const uint32_t kept = order[i - 1];
    order[i - 1] = order[other];
    order[other] = kept;
  }
}
