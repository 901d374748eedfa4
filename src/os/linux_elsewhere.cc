// Address space for regions, at a place that the caller agrees to, on Linux.
//
// The region map finds addresses that are 2 TiB apart in the same place, and for some classes free cannot
// tell a lower one from a block (slab/size_class.h). So regions stand in the lowest 2 TiB where they can:
// below them such an address is none, and what lies above is told. There they keep a distance, too: what runs
// over the end of one meets nothing.
//
// The kernel offers the same place again and again, so where that one will not do, large pieces are reserved,
// the largest first after a look near by, and looked through. A piece without a fit place is held meanwhile,
// and so the kernel comes up with another. As the pieces get smaller, all address space that is free comes
// by.
#include <errno.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "os/os.h"

namespace hummock::os {
namespace {

constexpr size_t kLargest = sizeof(void*) == 8 ? size_t{4} << 40 : size_t{1} << 30;
constexpr unsigned kMostHeld = 192;
constexpr uintptr_t kLeast = uintptr_t{1} << 29;  // as in linux.cc

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
    // Most often there is one near by.
    for (size_t length = 4 * size_; length < kLargest; length *= 8) {
      if (char* found = look_through(length, 1)) return found;
    }
    const size_t least = size_ + align_ - page_size();  // of any such piece a part is aligned
    for (size_t length = kLargest; length > least; length /= 2) {
      if (char* found = look_through(length)) return found;
    }
    if (char* found = look_through(least)) return found;
    return look_through(size_);
  }

 private:
  // All pieces of that length that the kernel gives, or so many.
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

  // The highest, as the kernel would.
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

  // The place alone is left, readable and writable; null: not to be had.
  char* cut(const Piece& piece, char* place) const {
    char* end = piece.start + piece.size;
    char* rest = place + size_;
    const void* got = calls.map(place, size_, PROT_READ | PROT_WRITE, kNothing | MAP_FIXED);
    if (got == MAP_FAILED) rest = place;
    if (place > piece.start) calls.unmap(piece.start, static_cast<size_t>(place - piece.start));
    if (end > rest) calls.unmap(rest, static_cast<size_t>(end - rest));
    return got == MAP_FAILED ? nullptr : place;
  }

  size_t size_, align_;
  MayStand may_;
  unsigned held_ = 0;
  Piece pieces_[kMostHeld];
};

// Above what Java, brk and 32-bit pointers want, below what Go, AddressSanitizer and mimalloc do, and within
// the 39 bits of the smallest 64-bit machines.
constexpr uint64_t kLowFrom = uint64_t{1} << 36;
constexpr uint64_t kLowEnd = uint64_t{1} << 39;
constexpr unsigned kTries = 3;

// Where the kernel put the process's stack decides where the first region stands: at random, unless the user
// wants addresses to be the same each time.
uint64_t first_low() {
  return uint64_t{getauxval(AT_RANDOM)} * 0x9e3779b97f4a7c15u >> 25;
}

// Null: not to be had there.
char* map_low(size_t size, size_t align, MayStand may) {
  static size_t passed;   // atomic, relaxed: multiples of 1 MiB; of two threads each gets a place of its own
  static bool is_in_use;  // atomic, relaxed: somebody else has that part of the address space
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

}  // namespace

void* reserve_where(size_t size, size_t align, MayStand may) {
  const int saved = errno;
  void* low = map_low(size, align, may);
  errno = saved;
  if (low != nullptr) return low;
  void* usual = map_aligned(size, align, 0);
  if (usual == nullptr || may(usual, size)) return usual;
  calls.unmap(usual, size);
  char* found = Search(size, align, may).run();
  errno = saved;
  return found;
}

}  // namespace hummock::os
