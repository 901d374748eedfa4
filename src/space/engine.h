// The engine of a space: memory, its free ranges, and figures. Nothing here locks, makes a system call or
// walks, unless it says so; the caller holds whatever keeps others out.
//
// Two policies share headers, walk and figures. *dense* (dense.h): ranges of any size, the smallest class
// that surely fits, immediate coalescing. *proven* (slots.h): slots of powers of two.
//
// Classes of free ranges: sizes below 2 KiB each have their own, then 64 classes a doubling. A bit for
// every class and a bit for every 64 classes say which lists are not empty.
//
// Order of stores: a header is written last, in one store, and describes the range as it was before or
// as it is after. So whoever dies between any two instructions leaves headers that can be walked, and
// rebuild() makes links, bits and figures from them.
#ifndef HUMMOCK_SPACE_ENGINE_H
#define HUMMOCK_SPACE_ENGINE_H

#include "space/block.h"

namespace hummock::space {

inline constexpr unsigned kFirstLog = 10;  // below 2^10 there is one class every 16 bytes
inline constexpr unsigned kLevels = kSizeBits - kFirstLog + 1;
static_assert(kLevels < 64);

enum class Policy : uint32_t { dense = 1, proven = 2 };

// A list's number is the place of its head, counted in words from the engine's beginning, so that a head,
// its bit and its bit's bit are found from one another by shifts. Classes begin at kFirstList.
inline constexpr uint64_t kFirstList = 64;

struct Engine {
  uint64_t levels;           // bit l: words[l] ≠ 0. proven: bit k: slots of 2^k are free
  uint64_t first;            // the first block
  uint64_t end;              // behind the last: its header has size 0 and is never free
  uint64_t used;             // bytes of live blocks, headers included
  uint64_t peak;             // highest `used`
  uint64_t live;             // live blocks
  uint64_t ranges;           // free ranges in lists
  uint64_t allocations;      // since creation
  uint64_t largest_request;  // bytes of block, refused or not
  uint64_t frontier;         // proven: what lies behind was never a slot
  uint64_t frontier_peak;    // proven: highest frontier
  uint64_t failures;         // requests refused
  uint64_t largest_refused;  // bytes of block
  Policy policy;
  uint32_t lists;               // the number behind that of the last list
  uint64_t open;                // open.h: the range that is cut before others, in no other list; or 0
  uint64_t open_size;           // its bytes; without one, of the last
  uint64_t reserved[16];        // so that the heads begin at list kFirstList
  uint64_t words[kLevels + 1];  // bit b of words[l]: list 64 l + b is not empty; the first has none
};
// The heads of the lists follow: the first free range of each, or 0.
static_assert(sizeof(Engine) == kFirstList * sizeof(uint64_t));

// Where the first block of a space of at most `maximum` bytes begins; a space has at least so many bytes.
uint64_t engine_size(uint64_t maximum);

// Makes an engine at `place` (aligned to 64), which will never be of more than `maximum` bytes, and has
// no memory for blocks yet: engine_size() + `records` bytes must be there: a multiple of 16 for the caller,
// zeroed, see records_of().
Engine* make_engine(void* place, uint64_t maximum, Policy policy, uint64_t records);

// The records that make_engine() put between the lists and the first block.
inline void* records_of(Engine* engine) {
  return reinterpret_cast<char*>(engine) + engine->lists * sizeof(uint64_t);
}

inline bool has_records(const Engine* engine) {
  return engine->first - kGranule != engine->lists * sizeof(uint64_t);
}

// The engine and its blocks are `bytes` long from now on, a multiple of 16: longer by 32 or more …
void extend(Engine* engine, uint64_t bytes);
// … or shorter: it gives up what is free at its end, as far as `bytes`. Returns the length it has now.
uint64_t cut(Engine* engine, uint64_t bytes);

// A block of `size` = block_size(request) bytes; 0 when no range found fits. malloc and free
// of spaces use the inlined parts of dense.h and slots.h instead.
uint64_t take(Engine* engine, uint64_t size);
// dense: the first few ranges of the size's own class are looked at, of which take() sees one.
uint64_t take_within_class(Engine* engine, uint64_t size);
// As take(), with its payload aligned to `align` > 16, a power of two.
uint64_t take_aligned(Engine* engine, uint64_t size, size_t align);
// A block whose header was checked.
void give(Engine* engine, uint64_t at);
// True when the block has `size` bytes now, or more, without moving.
bool resize(Engine* engine, uint64_t at, uint64_t size);

// The free range at `at`, whose header is right and which is in no list, enters its list.
void put_range(Engine* engine, uint64_t at);

// A free range at least so large exists: within 1/64 of the largest, or the largest.
uint64_t largest_free(const Engine* engine);

// Everything but headers is made anew from headers, adjacent free ranges joined. Walks. False when the
// headers are broken: nothing is changed then.
bool rebuild(Engine* engine);

// Calls visit(context, at, header) for every block and free range in order of address, while it
// returns true. False when headers, links, bits or figures contradict each other. Walks.
bool walk(const Engine* engine, bool (*visit)(void*, uint64_t, uint64_t), void* context);
bool is_sound(const Engine* engine);

// ---- Inlined, since they are on every path -------------------------------------------------------

inline uint64_t& word(Engine* engine, uint64_t at) {
  return *reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(engine) + at);
}
inline uint64_t word(const Engine* engine, uint64_t at) {
  return *reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(engine) + at);
}

// A live block's header is read by its freer while, under the lock, its neighbour's freer changes
// kPrevFree in it; seal and size stay. Relaxed: nothing else is ordered by it.
inline uint64_t header(const Engine* engine, uint64_t at) {
  return __atomic_load_n(
      reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(engine) + at - kHeader),
      __ATOMIC_RELAXED);
}
// Earlier stores must be there when the header is, for the process that finds the headers of a dead one: the
// compiler keeps the order, and a dead process's stores are all done.
inline void set_header(Engine* engine, uint64_t at, uint64_t value) {
  __atomic_signal_fence(__ATOMIC_RELEASE);
  __atomic_store_n(&word(engine, at - kHeader), value, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_ACQUIRE);
}

// Figures are written by who holds the engine, and may be read by anybody: 64-bit words do not tear.
__attribute__((no_sanitize("thread"))) inline uint64_t figure(const uint64_t& field) {
  return __atomic_load_n(&field, __ATOMIC_RELAXED);
}

// The head of a list.
inline uint64_t& head(Engine* engine, uint64_t list) {
  return word(engine, list * sizeof(uint64_t));
}
inline uint64_t head(const Engine* engine, uint64_t list) {
  return word(engine, list * sizeof(uint64_t));
}

inline void* payload(Engine* engine, uint64_t at) {
  return reinterpret_cast<char*>(engine) + at;
}
// Any address: of what is not in the space, the offset is not below `end`.
inline uint64_t offset_of(const Engine* engine, const void* p) {
  return reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(engine);
}

// The list of free ranges of a size.
inline uint64_t list_of(uint64_t size) {
  const unsigned log = 63u ^ static_cast<unsigned>(__builtin_clzll(size | (uint64_t{1} << kFirstLog)));
  return kFirstList + (uint64_t{log - kFirstLog} << 6) + (size >> (log - 6));
}

inline void note_request(Engine* engine, uint64_t size) {
  if (size > engine->largest_request) engine->largest_request = size;
}

inline void count_taken(Engine* engine, uint64_t size) {
  const uint64_t used = engine->used + size;
  engine->used = used;
  if (used > engine->peak) engine->peak = used;
  ++engine->live;
  ++engine->allocations;
}
inline void count_given(Engine* engine, uint64_t size) {
  engine->used -= size;
  --engine->live;
}

}  // namespace hummock::space

#endif  // HUMMOCK_SPACE_ENGINE_H
