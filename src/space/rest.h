// Blocks *at rest*: the owner's cache of a space, with blocks that the owner freed and may soon want again,
// in a list for each class. To the engine they stay blocks, so their neighbours and the lists of free ranges
// do not change: free links the block, and malloc of its class takes it back. While no long range is free, no
// block comes to rest, and each malloc gives one of them to the engine. A malloc that would be refused first
// gives all of them to it.
//
// Longer blocks that are freed in the order of their addresses are a *run*. When the owner next needs the
// engine, the run becomes one free range, or a part of the open range if it has reached that.
#ifndef HUMMOCK_SPACE_REST_H
#define HUMMOCK_SPACE_REST_H

#include "space/open.h"

namespace hummock::space {

inline constexpr uint64_t kResting = 8;  // a flag in a header; in other modes the bit is kFromCache
inline constexpr size_t kMostResting = size_t{256} << 10;  // the largest request whose block may rest
inline constexpr uint64_t kOneSize = 8192;                 // blocks below it rest in lists of one size each
inline constexpr unsigned kStepLog = 8;                    // each list of longer blocks has 16 sizes

// The record, which follows the engine's lists. The owner writes it; statistics read `bytes` and the lists.
struct Rest {
  uint64_t bytes;        // of all blocks at rest
  uint64_t enough;       // the engine's `levels` is at least this while a range is long enough
  uint64_t blocks;       // the most blocks in a list
  uint64_t largest;      // bytes of the largest block at rest
  uint64_t count;        // number of lists
  uint64_t turn;         // the list that is emptied next
  uint64_t part;         // a range of so many bytes is long enough
  uint64_t behind;       // the end of the block that was freed last, if its size has no list
  uint64_t run;          // the first block of the run
  uint64_t in_run;       // blocks in the run, which ends at `behind`; 0: there is no run
  uint64_t expects_run;  // 1: the last run had more than one block
  uint64_t reserved;
  struct List {
    uint64_t first;  // the block freed last, or 0; its first word has the next
    uint64_t room;   // how many more blocks may come
  } lists[];
};
static_assert(sizeof(Rest) % kGranule == 0 && sizeof(Rest::List) % kGranule == 0);

// The list for a size below kOneSize, and for a size from kOneSize to `largest`.
inline Rest::List* small_list(Rest* rest, uint64_t size) {
  return &rest->lists[size / kGranule];
}
inline Rest::List* large_list(Rest* rest, uint64_t size) {
  return &rest->lists[kOneSize / kGranule - (kOneSize >> kStepLog)] + (size >> kStepLog);
}
// The number of lists if requests up to `largest` are cached; the lists of one size always exist.
inline uint64_t rest_lists(size_t largest) {
  const uint64_t size = resting_size(largest);
  return kOneSize / kGranule + (size < kOneSize ? 0 : (size >> kStepLog) - (kOneSize >> kStepLog) + 1);
}
// The size of the record.
inline uint64_t rest_size(size_t largest) {
  return sizeof(Rest) + rest_lists(largest) * sizeof(Rest::List);
}

Rest* make_rest(void* place, size_t largest, uint64_t blocks);
// Call it when the space's size has changed.
void fit_rest(const Engine* engine, Rest* rest);
// Turns the run, if there is one, into a free range.
void end_run(Engine* engine, Rest* rest);
// The number of blocks at rest; sums the lists.
uint64_t resting_blocks(const Rest* rest);
// Gives one block at rest to the engine, or looks at a few lists, in turn, for the next that has any.
void wake_one(Engine* engine, Rest* rest);
// Gives all of them to the engine, one by one.
void wake_all(Engine* engine, Rest* rest);

// No free range is long enough (the power of two below a quarter of the space): blocks at rest may be what
// separates longer ranges.
inline bool is_short(const Engine* engine, const Rest* rest) {
  return engine->open_size < rest->part && engine->levels < rest->enough;
}

// Bits of a header without its seal that must be 0 for the block to be live, not cached, and not aligned.
inline constexpr uint64_t kUnrestful = ~(kSizeMask | kPrevFree);

// Takes the list's first block if it has `size` bytes, or 0. In a list of one size all blocks have. The block
// is live from then on.
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

// Puts the live block of `size` bytes to rest; `value` is its header, and its list has room.
__attribute__((always_inline)) inline void lay(Engine* engine, Rest* rest, Rest::List* list, uint64_t at,
                                               uint64_t value, uint64_t size) {
  word(engine, at) = list->first;
  list->first = at;
  set_header(engine, at, value | kResting);
  --list->room;
  rest->bytes += size;
}

// Puts the live block to rest if its list has room; `value` is its header.
__attribute__((always_inline)) inline bool lay_down(Engine* engine, Rest* rest, Rest::List* list, uint64_t at,
                                                    uint64_t value) {
  if (__builtin_expect(list->room == 0 || is_short(engine, rest), false)) return false;
  lay(engine, rest, list, at, value, size_in(value));
  return true;
}

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_REST_H
