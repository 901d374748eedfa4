// Address space at a place that the caller agrees to, on Linux.
//
// The kernel offers the same place again and again, so where that one will not do, large pieces are reserved,
// the largest first after a look near by, and looked through. A piece without a fit place is held meanwhile,
// and so the kernel comes up with another. As the pieces get smaller, all address space that is free comes
// by.
#include <errno.h>
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

}  // namespace

void* reserve_where(size_t size, size_t align, MayStand may) {
  void* usual = map_aligned(size, align, 0);
  if (usual == nullptr || may(usual, size)) return usual;
  const int saved = errno;
  calls.unmap(usual, size);
  char* found = Search(size, align, may).run();
  errno = saved;
  return found;
}

}  // namespace hummock::os
