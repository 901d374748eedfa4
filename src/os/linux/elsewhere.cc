// Address space for regions, at a place that the caller agrees to, on Linux.
//
// The region map finds addresses 2 TiB apart in the same place, and for some classes free cannot tell a lower
// one from a block (slab/size_class.h). So regions are in the lowest 2 TiB if possible: there is no such
// lower address then, and a higher one is reported. They are also apart from each other, so that an overflow
// at the end of one hits nothing.
//
// The kernel offers the same place again and again. If that place will not do, the search reserves pieces of
// address space, first some near by, then the largest, and looks through them. It holds a piece without a
// good place meanwhile, so the kernel must offer another. As the pieces get smaller, the search sees all
// address space that is free.
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "base/keep_errno.h"
#include "os/linux/told.h"
#include "os/os.h"

namespace hummock::os {
namespace {

constexpr size_t kLargest = sizeof(void*) == 8 ? size_t{4} << 40 : size_t{1} << 30;
constexpr unsigned kMostHeld = 192;
constexpr uintptr_t kLeast = uintptr_t{1} << 29;  // as in memory.cc

constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

struct Piece {
  char* start;
  size_t size;
};

class Search {
 public:
  Search(size_t size, size_t align, MayStand may) : size_(size), align_(align), may_(may) {}
  ~Search() {
    for (unsigned i = 0; i < held_; ++i) calls.unmap(pieces_[i].start, pieces_[i].size);
  }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  char* run() {
    // Mostly there is a place near by.
    for (uint64_t length = uint64_t{4} * size_; length < kLargest; length *= 8) {  // 64 bits: it ends
      if (char* found = look_through(static_cast<size_t>(length), 1)) return found;
    }
    const size_t least = size_ + align_ - page_size();  // a piece of this length always has an aligned part
    for (size_t length = kLargest; length > least; length /= 2) {
      if (char* found = look_through(length)) return found;
    }
    if (char* found = look_through(least)) return found;
    return look_through(size_);
  }

 private:
  // Takes pieces of that length from the kernel, at most so many, until one has a place.
  char* look_through(size_t length, unsigned most = kMostHeld) {
    for (; most != 0 && held_ < kMostHeld; --most) {
      void* got = calls.map(nullptr, length, PROT_NONE, kNothing);
      if (got == MAP_FAILED) return nullptr;
      const Piece piece = {static_cast<char*>(got), length};
      if (char* place = find(piece)) return cut(piece, place);
      pieces_[held_++] = piece;
    }
    return nullptr;
  }

  // Finds the highest place, as the kernel would.
  char* find(const Piece& piece) const {
    const uintptr_t from = reinterpret_cast<uintptr_t>(piece.start);
    const uintptr_t least = from < kLeast ? kLeast : from;
    if (piece.size < size_) return nullptr;
    uintptr_t at = (from + piece.size - size_) & ~(align_ - 1);
    for (; at >= least && at >= align_; at -= align_) {
      if (may_(reinterpret_cast<void*>(at), size_)) return reinterpret_cast<char*>(at);
    }
    return nullptr;
  }

  // Unmaps the piece except for the place, and makes that readable and writable. Null: refused.
  char* cut(const Piece& piece, char* place) const {
    char* end = piece.start + piece.size;
    const bool allowed = allow(place, size_);  // a refused mmap may unmap the place
    char* rest = allowed ? place + size_ : place;
    if (place > piece.start) calls.unmap(piece.start, static_cast<size_t>(place - piece.start));
    if (end > rest) calls.unmap(rest, static_cast<size_t>(end - rest));
    return allowed ? place : nullptr;
  }

  size_t size_, align_;
  MayStand may_;
  unsigned held_ = 0;
  Piece pieces_[kMostHeld];
};

// Above the addresses that Java, brk and 32-bit pointers use, below those of Go, AddressSanitizer and
// mimalloc, and within the 39 bits of the smallest 64-bit machines.
constexpr uint64_t kLowFrom = uint64_t{1} << 36;
constexpr uint64_t kLowEnd = uint64_t{1} << 39;
constexpr unsigned kTries = 3;

// The place of the process's stack decides where the first region is: at random, unless the user wants the
// same addresses each time.
uint64_t first_low() {
  return uint64_t{getauxval(AT_RANDOM)} * 0x9e3779b97f4a7c15u >> 25;
}

// Null: not possible there.
char* map_low(size_t size, size_t align, MayStand may) {
  static size_t passed;   // atomic, relaxed: in units of 1 MiB; each thread gets a place of its own
  static bool is_in_use;  // atomic, relaxed: others use that part of the address space
  constexpr uint64_t kRange = kLowEnd - kLowFrom;
  if (sizeof(void*) != 8 || size > kRange / 8 || __atomic_load_n(&is_in_use, __ATOMIC_RELAXED))
    return nullptr;
  const size_t step = (base::align_up(size, align) + align) >> 20;
  for (unsigned tries = 0; tries < kTries; ++tries) {
    const uint64_t at = first_low() + (uint64_t{__atomic_fetch_add(&passed, step, __ATOMIC_RELAXED)} << 20);
    const uintptr_t wish = base::align_up(static_cast<uintptr_t>(kLowFrom + at % kRange), align);
    void* got = calls.map(reinterpret_cast<void*>(wish), size, PROT_READ | PROT_WRITE, kNothing);
    if (got == MAP_FAILED) return nullptr;
    if (reinterpret_cast<uintptr_t>(got) == wish && may(got, size)) return static_cast<char*>(got);
    calls.unmap(got, size);
  }
  __atomic_store_n(&is_in_use, true, __ATOMIC_RELAXED);
  return nullptr;
}

// Far above what map_low takes, and below stacks and libraries. A place is 64 times as long as what begins
// there, so blocks that grow seldom leave theirs, and near enough to others that they share page tables.
constexpr uint64_t kApartFrom = uint64_t{1} << 40;
constexpr uint64_t kApartEnd = uint64_t{1} << 46;
constexpr uint64_t kLeastPlace = uint64_t{1} << 32;
constexpr uint64_t kLongestApart = uint64_t{1} << 37;

}  // namespace

void* map_apart(size_t size, size_t align, size_t before) {
  static uint64_t passed;  // atomic, relaxed: each block has a place of its own
  static unsigned pause;   // atomic, relaxed: so many do not try, where the last one met something
  constexpr unsigned kPause = 16;
  if (sizeof(void*) != 8 || size > kLongestApart || align > kLeastPlace / 8) return nullptr;
  if (const unsigned left = __atomic_load_n(&pause, __ATOMIC_RELAXED)) {
    __atomic_store_n(&pause, left - 1, __ATOMIC_RELAXED);
    return nullptr;
  }
  const base::KeepErrno keep;
  const uint64_t place = base::align_up(uint64_t{size} * 64, kLeastPlace);
  const uint64_t at = first_low() % kLeastPlace + __atomic_fetch_add(&passed, place, __ATOMIC_RELAXED);
  const uint64_t begin = kApartFrom + at % (kApartEnd - kApartFrom);
  char* start = reinterpret_cast<char*>(base::align_up(static_cast<uintptr_t>(begin), align));
  void* got = calls.map(start - before, before + size, PROT_READ | PROT_WRITE, kNothing);
  if (got == MAP_FAILED) return nullptr;
  if (got == start - before) return told(start, size);
  __atomic_store_n(&pause, kPause, __ATOMIC_RELAXED);
  calls.unmap(got, before + size);
  return nullptr;
}

void* reserve_where(size_t size, size_t align, MayStand may) {
  const base::KeepErrno keep;
  void* low = map_low(size, align, may);
  if (low != nullptr) return low;
  void* usual = map_aligned(size, align, 0);
  if (usual == nullptr || may(usual, size)) return usual;
  calls.unmap(usual, size);
  return Search(size, align, may).run();
}

}  // namespace hummock::os
