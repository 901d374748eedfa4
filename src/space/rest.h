// Blocks at rest: what the owner of a space freed and may soon want again, a list for each class. They stay
// blocks to the engine, so neither their neighbours nor the lists of free ranges are touched: free links the
// block, malloc of its class takes it back. While no long range is free, nothing comes to rest there and each
// malloc gives one of them to the engine; what would be refused gives all of them to it first.
//
// Longer blocks that are freed one behind the other are a *run*: it ends when the owner wants more
// from the engine, as one free range, or as part of the open range if it has reached that.
#ifndef HUMMOCK_SPACE_REST_H
#define HUMMOCK_SPACE_REST_H

#include "space/open.h"

namespace hummock::space {

inline constexpr uint64_t kResting = 8;  // in a header, where no cache marks its blocks (kFromCache)
inline constexpr size_t kMostResting = size_t{256} << 10;  // the largest request whose block may rest
inline constexpr uint64_t kOneSize = 8192;                 // blocks below it rest in lists of one size each
inline constexpr unsigned kStepLog = 8;                    // of longer ones, every list has those of 16 sizes

// Behind the lists of the engine: its records. Written by the owner; `bytes` and lists are read by who makes
// statistics.
struct Rest {
  uint64_t bytes;        // of what rests
  uint64_t enough;       // the engine's `levels` while a range is long enough, at least
  uint64_t blocks;       // at most so many a list
  uint64_t largest;      // bytes of block
  uint64_t count;        // of lists
  uint64_t turn;         // the list that is emptied next
  uint64_t part;         // bytes of a range that is long enough
  uint64_t behind;       // where what was freed last ended, if its size has no list
  uint64_t run;          // the first block of the run
  uint64_t in_run;       // blocks of the run, which ends at `behind`; 0: there is none
  uint64_t expects_run;  // 1: the last one was of more than one block
  uint64_t reserved;
  struct List {
    uint64_t first;  // the block freed last, or 0; the next stands in its first word
    uint64_t room;   // so many more may rest
  } lists[];
};
static_assert(sizeof(Rest) % kGranule == 0 && sizeof(Rest::List) % kGranule == 0);

// The list of blocks of a size below kOneSize, and of one not below, which is not above `largest`.
inline Rest::List* small_list(Rest* rest, uint64_t size) {
  return &rest->lists[size / kGranule];
}
inline Rest::List* large_list(Rest* rest, uint64_t size) {
  return &rest->lists[kOneSize / kGranule - (kOneSize >> kStepLog)] + (size >> kStepLog);
}
// The number of lists when blocks of requests up to `largest` are cached; those of one size are always there.
inline uint64_t rest_lists(size_t largest) {
  const uint64_t size = resting_size(largest);
  return kOneSize / kGranule + (size < kOneSize ? 0 : (size >> kStepLog) - (kOneSize >> kStepLog) + 1);
}
// Bytes of the record.
inline uint64_t rest_size(size_t largest) {
  return sizeof(Rest) + rest_lists(largest) * sizeof(Rest::List);
}

Rest* make_rest(void* place, size_t largest, uint64_t blocks);
// To be told when the space has another size.
void fit_rest(const Engine* engine, Rest* rest);
// The run, if there is one, becomes a free range.
void end_run(Engine* engine, Rest* rest);
// The number of blocks at rest; sums the lists.
uint64_t resting_blocks(const Rest* rest);
// Gives a resting block to the engine, or looks for the next list that has any: at a few only, in turn.
void wake_one(Engine* engine, Rest* rest);
// All of them. Cost: each is given.
void wake_all(Engine* engine, Rest* rest);

// No free range has the power of two below a quarter of the space: what rests may be what stands between
// longer ones.
inline bool is_short(const Engine* engine, const Rest* rest) {
  return engine->open_size < rest->part && engine->levels < rest->enough;
}

// Bits of a header without its seal that must be 0 for the block to be live, not cached, and not aligned.
inline constexpr uint64_t kUnrestful = ~(kSizeMask | kPrevFree);

// A list's first block, if it has `size` bytes, as all have where the list is of one size; else 0. It is
// a live one from then on.
template <bool kOfOneSize>
__attribute__((always_inline)) inline uint64_t take_resting(Engine* engine, Rest* rest, Rest::List* list,
                                                            uint64_t size) {
  const uint64_t at = list->first;
  if (__builtin_expect(at == 0, false)) return 0;
  const uint64_t value = header(engine, at);
  if constexpr (!kOfOneSize) {
    if (__builtin_expect(size_in(value) < size, false)) return 0;
    size = size_in(value);
  }
  list->first = word(engine, at);
  set_header(engine, at, value & ~kResting);  // between the two: one store for both would be slower
  ++list->room;
  rest->bytes -= size;
  return at;
}

// The live block of `size` bytes comes to rest; `value` is its header, and its list has room.
__attribute__((always_inline)) inline void lay(Engine* engine, Rest* rest, Rest::List* list, uint64_t at,
                                               uint64_t value, uint64_t size) {
  word(engine, at) = list->first;
  list->first = at;
  set_header(engine, at, value | kResting);
  --list->room;
  rest->bytes += size;
}

// The live block comes to rest if its list has room; `value` is its header.
__attribute__((always_inline)) inline bool lay_down(Engine* engine, Rest* rest, Rest::List* list, uint64_t at,
                                                    uint64_t value) {
  if (__builtin_expect(list->room == 0 || is_short(engine, rest), false)) return false;
  lay(engine, rest, list, at, value, size_in(value));
  return true;
}

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_REST_H
