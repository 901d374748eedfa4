// The open range of a dense space whose owner has a cache: a free range that stands in a list of its own,
// which find() does not see, at hand for whatever fits no range of the lists. Mostly it is what was left of
// a long one: blocks are cut from its beginning, and a block before it that is freed makes it longer.
//
// To a neighbour that is freed it is as any free range: unlink() takes it from its list, `open`.
#ifndef HUMMOCK_SPACE_OPEN_H
#define HUMMOCK_SPACE_OPEN_H

#include "space/dense.h"

namespace hummock::space {

// A list below kFirstList: what unlink() marks as empty then is nothing that anybody reads.
inline constexpr uint64_t kOpenList = offsetof(Engine, open) / sizeof(uint64_t);
static_assert(kOpenList < kFirstList);

// A range that is in no list becomes the open one; there is none. Its header follows.
__attribute__((always_inline)) inline void link_open(Engine* engine, uint64_t at, uint64_t size) {
  word(engine, at + kNext) = 0;
  __atomic_signal_fence(__ATOMIC_RELEASE);  // as in link()
  word(engine, at + kSlot) = kOpenList * sizeof(uint64_t);
  word(engine, at + size - 2 * kHeader) = size;
  engine->open = at;
  engine->open_size = size;
  set_header(engine, at, seal(at) | size | kFree);
}

// The open range, if there is one, enters the list of its class.
inline void close_open(Engine* engine) {
  const uint64_t at = engine->open;
  const uint64_t size = engine->open_size;
  engine->open_size = 0;
  if (at == 0) return;
  engine->open = 0;
  link(engine, at, size);
}

// A block from the open range; 0 when it is too short.
__attribute__((always_inline)) inline uint64_t cut_open(Engine* engine, uint64_t size) {
  const uint64_t at = engine->open;
  const uint64_t room = engine->open_size;
  if (__builtin_expect(at == 0 || room < size, false)) return 0;
  if (__builtin_expect(room - size >= kLeastBlock, true)) {
    link_open(engine, at + size, room - size);
  } else {
    size = room;
    engine->open = engine->open_size = 0;
    --engine->ranges;
    set_header(engine, at + room, header(engine, at + room) & ~kPrevFree);
  }
  set_header(engine, at, seal(at) | size);
  count_taken(engine, size);
  return at;
}

// Has any list a range that may be long enough?
__attribute__((always_inline)) inline bool may_fit(const Engine* engine, uint64_t size) {
  const uint64_t list = list_of(size);
  const uint64_t level = list >> 6;
  return (engine->words[level] >> (list & 63) | engine->levels >> 1 >> level) != 0;
}

// A block: from the lists, if they have any range that fits, since the open one is mostly the longest; what
// is left of a longer one becomes the open one if `kKeep`. 0: nothing fits.
template <bool kKeep>
__attribute__((always_inline)) inline uint64_t take_open(Engine* engine, uint64_t size) {
  const uint64_t list = find(engine, size);
  if (list == kNoList) return cut_open(engine, size);
  if constexpr (!kKeep) return take_from(engine, list, size);
  const uint64_t at = head(engine, list);
  const uint64_t room = size_in(header(engine, at));
  if (engine->open != 0 && room <= engine->open_size) return take_from(engine, list, size);
  const uint64_t rest = room - size;
  const uint64_t open = engine->open == 0 ? 0 : engine->open_size;
  engine->open_size = open;
  if (rest <= open || rest < kLeastBlock) return take_from(engine, list, size);
  pop_range(engine, list);
  close_open(engine);
  link_open(engine, at + size, rest);
  set_header(engine, at, seal(at) | size);
  count_taken(engine, size);
  return at;
}

// A range that ends where the open one begins, no block any more and in no list, becomes part of it; `mine`
// is its header, or that of its first block.
inline void join_open(Engine* engine, uint64_t at, uint64_t mine) {
  uint64_t size = engine->open + engine->open_size - at;
  join_before(engine, &at, &size, mine);
  link_open(engine, at, size);
}

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_OPEN_H
