// The *dense* policy: take and give, inlined into the calls of each kind of space.
#ifndef HUMMOCK_SPACE_DENSE_H
#define HUMMOCK_SPACE_DENSE_H

#include "space/engine.h"

namespace hummock::space {

inline constexpr uint64_t kNext = 0;  // in a free range: the next of its class
inline constexpr uint64_t kSlot = 8;  // and where the link stands that leads to this one

// The part of a block's header that a change of size leaves as it is.
inline constexpr uint64_t kKept = kPrevFree | kAlignmentMask;

inline void mark(Engine* engine, uint64_t list) {
  engine->words[list >> 6] |= uint64_t{1} << (list & 63);
  engine->levels |= uint64_t{1} << (list >> 6);
}

// All bits but one, modulo 64.
inline uint64_t all_but(uint64_t bit) {
  return ~uint64_t{1} << (bit & 63) | ~uint64_t{1} >> (-bit & 63);
}

inline void unmark(Engine* engine, uint64_t list) {
  const uint64_t left = engine->words[list >> 6] & all_but(list);
  engine->words[list >> 6] = left;
  if (left == 0) engine->levels &= all_but(list >> 6);
}

// A free range enters the list of its class, first. Its header follows.
__attribute__((always_inline)) inline void link(Engine* engine, uint64_t at, uint64_t size) {
  const uint64_t list = list_of(size);
  const uint64_t next = head(engine, list);
  word(engine, at + kNext) = next;
  __atomic_signal_fence(__ATOMIC_RELEASE);  // two stores are shorter than what would join them into one
  word(engine, at + kSlot) = list * sizeof(uint64_t);
  word(engine, at + size - 2 * kHeader) = size;
  head(engine, list) = at;
  if (next != 0) {
    word(engine, next + kSlot) = at + kNext;
  } else {
    mark(engine, list);
  }
}

__attribute__((always_inline)) inline void unlink(Engine* engine, uint64_t at) {
  const uint64_t next = word(engine, at + kNext);
  const uint64_t slot = word(engine, at + kSlot);
  word(engine, slot) = next;
  if (next != 0) {
    word(engine, next + kSlot) = slot;
  } else if (slot < engine->first) {  // the head of a list, which is empty now
    unmark(engine, slot / sizeof(uint64_t));
  }
}

// The list whose first range is long enough: the request's own class, if it is, for what was freed last
// stands there and can be had again; else the next class that has any. kNoList: none.
inline constexpr uint64_t kNoList = ~uint64_t{0};
__attribute__((always_inline)) inline uint64_t find(const Engine* engine, uint64_t size) {
  const uint64_t list = list_of(size);
  const uint64_t own = head(engine, list);
  if (own != 0 && size_in(header(engine, own)) >= size) return list;
  uint64_t level = (list + 1) >> 6;
  uint64_t fits = engine->words[level] & (~uint64_t{0} << ((list + 1) & 63));
  if (fits == 0) {
    const uint64_t above = engine->levels & (~uint64_t{1} << level);
    if (above == 0) return kNoList;
    level = static_cast<unsigned>(__builtin_ctzll(above));
    fits = engine->words[level];
  }
  return (level << 6) + static_cast<unsigned>(__builtin_ctzll(fits));
}

// The first range of a list, which has one.
__attribute__((always_inline)) inline uint64_t pop_range(Engine* engine, uint64_t list) {
  const uint64_t at = head(engine, list);
  const uint64_t next = word(engine, at + kNext);
  head(engine, list) = next;
  if (next != 0) {
    word(engine, next + kSlot) = list * sizeof(uint64_t);
  } else {
    unmark(engine, list);
  }
  return at;
}

// A range that is in no list, neighbours not free, is free from now on.
__attribute__((always_inline)) inline void make_free(Engine* engine, uint64_t at, uint64_t size) {
  link(engine, at, size);
  set_header(engine, at, seal(at) | size | kFree);
}

// Makes a block of the first `size` bytes of the range at `at`, which is `room` bytes long and in no list.
// Returns its size.
__attribute__((always_inline)) inline uint64_t make_block(Engine* engine, uint64_t at, uint64_t room,
                                                          uint64_t size, uint64_t bits) {
  const uint64_t rest = room - size;
  if (rest >= kLeastBlock) {
    make_free(engine, at + size, rest);
  } else {
    size = room;
    --engine->ranges;
    set_header(engine, at + room, header(engine, at + room) & ~kPrevFree);
  }
  set_header(engine, at, seal(at) | size | bits);
  return size;
}

// A block from that list. What is left over of its first range mostly belongs to the same list: it takes the
// range's place there.
__attribute__((always_inline)) inline uint64_t take_from(Engine* engine, uint64_t list, uint64_t size) {
  const uint64_t at = head(engine, list);
  const uint64_t room = size_in(header(engine, at));
  const uint64_t rest = room - size;
  if (list_of(rest) == list && rest >= kLeastBlock) {
    const uint64_t left = at + size;
    const uint64_t next = word(engine, at + kNext);
    head(engine, list) = left;
    word(engine, left + kNext) = next;
    __atomic_signal_fence(__ATOMIC_RELEASE);  // as in link()
    word(engine, left + kSlot) = list * sizeof(uint64_t);
    word(engine, at + room - 2 * kHeader) = rest;
    if (next != 0) word(engine, next + kSlot) = left + kNext;
    set_header(engine, left, seal(left) | rest | kFree);
    set_header(engine, at, seal(at) | size);
    count_taken(engine, size);
    return at;
  }
  pop_range(engine, list);
  count_taken(engine, make_block(engine, at, room, size, 0));
  return at;
}

// Joins what is freed at `*at`, whose header is `mine`, to the free range before it, if there is one.
__attribute__((always_inline)) inline void join_before(Engine* engine, uint64_t* at, uint64_t* size,
                                                       uint64_t mine) {
  if ((mine & kPrevFree) == 0) return;
  set_header(engine, *at, mine | kFree);
  const uint64_t before = word(engine, *at - 2 * kHeader);
  *at -= before;
  *size += before;
  unlink(engine, *at);
  --engine->ranges;
}

// `mine` is the block's header.
__attribute__((always_inline)) inline void give_dense(Engine* engine, uint64_t at, uint64_t mine) {
  uint64_t size = size_in(mine);
  count_given(engine, size);
  const uint64_t next = at + size;
  const uint64_t behind = header(engine, next);
  if ((behind & kFree) != 0) {
    unlink(engine, next);
    size += size_in(behind);
  } else {
    ++engine->ranges;
    set_header(engine, next, behind | kPrevFree);
  }
  join_before(engine, &at, &size, mine);
  asm("" : "+r"(at));  // else addresses are made for both ways here, and kept in registers
  make_free(engine, at, size);
}

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_DENSE_H
