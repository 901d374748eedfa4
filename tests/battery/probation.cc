#include "probation.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace battery {
namespace {

constexpr size_t kRoom = 1 << 15;   // live pieces of memory of one table at most
constexpr size_t kEdge = 64 * KiB;  // of large blocks the first and last bytes are checked

enum class Use : uint8_t { block, unchecked_block, borrowed, unwritten };

struct Piece {
  char* from;
  size_t size;
  uint64_t seed;
  Use use;

  bool has_pattern() const { return use == Use::block || use == Use::borrowed; }
  bool is_block() const { return use == Use::block || use == Use::unchecked_block; }
};

bool zeros;

uint64_t pattern(uint64_t number) {
  return zeros ? 0 : number * 0x9e3779b97f4a7c15u;
}

// Calls visit(word, value) for the words of the piece that carry its pattern.
template <class Visit>
void each_word(const Piece& piece, Visit visit) {
  const size_t words = piece.size / 8;
  for (size_t i = 0; i < words; ++i) {
    if (i * 8 == kEdge && words * 8 > 2 * kEdge) i = words - kEdge / 8;
    visit(piece.from + i * 8, pattern(piece.seed + i), 8);
  }
  if (piece.size % 8 != 0) visit(piece.from + words * 8, pattern(piece.seed), piece.size % 8);
}

void fill(const Piece& piece) {
  if (!piece.has_pattern()) return;
  each_word(piece, [](char* at, uint64_t value, size_t length) { memcpy(at, &value, length); });
}

void check_contents(const Piece& piece) {
  if (!piece.has_pattern()) return;
  each_word(piece, [&](char* at, uint64_t value, size_t length) {
    if (memcmp(at, &value, length) == 0) return;
    end(kCorrupt, "corrupt: the live block at %p of %zu bytes changed at +%zu",
        static_cast<void*>(piece.from), piece.size, static_cast<size_t>(at - piece.from));
  });
}

void check_zero(const char* from, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    if (from[i] != 0) end(kCorrupt, "corrupt: calloc(%zu) gave a byte that is not zero at +%zu", size, i);
  }
}

// Live memory, kept outside the allocator under test.
class Table {
 public:
  void add(void* from, size_t size, Use use) {
    if (pieces_ == nullptr) map();
    if (count_ == kRoom) end(kFailed, "the probation's table is full");
    const Piece piece{static_cast<char*>(from), size, ++seeds_ << 20, use};
    pieces_[count_++] = piece;
    fill(piece);
  }

  void add_blocks(size_t size, size_t count, bool zeroed = false) {
    for (size_t i = 0; i < count; ++i) {
      char* block = static_cast<char*>(zeroed ? call::calloc(1, size) : call::malloc(size));
      if (block == nullptr) end(kFailed, "no more memory for %zu bytes", size);
      if (zeroed) check_zero(block, size);
      add(block, size, Use::block);
    }
  }

  void add_mixed(size_t count, Random& random) {
    for (size_t i = 0; i < count; ++i) {
      const size_t top = i % 64 == 0 ? 64 * KiB : i % 8 == 0 ? 4 * KiB : 512;
      add_blocks(random.between(1, top), 1, i % 5 == 0);
    }
  }

  // Frees the blocks for which chosen() holds, in a scattered order.
  template <class Chosen>
  void free_blocks(Chosen chosen) {
    shuffle();
    size_t left = 0;
    for (size_t i = 0; i < count_; ++i) {
      const Piece piece = pieces_[i];
      if (!piece.is_block() || !chosen()) {
        pieces_[left++] = piece;
        continue;
      }
      check_contents(piece);
      call::free(piece.from);
    }
    count_ = left;
  }

  // Moves about `count` blocks into `other`.
  void give(Table& other, size_t count) {
    if (other.pieces_ == nullptr) other.map();
    size_t left = 0;
    for (size_t i = 0; i < count_; ++i) {
      const bool moves = pieces_[i].is_block() && count != 0 && other.count_ < kRoom;
      (moves ? other.pieces_[other.count_++] : pieces_[left++]) = pieces_[i];
      count -= moves;
    }
    count_ = left;
  }

  void fill_with_zeros() { zeros = true; }
  void refill() {
    for (size_t i = 0; i < count_; ++i) fill(pieces_[i]);
  }

  void check() {
    if (count_ == 0) return;
    std::sort(pieces_, pieces_ + count_, [](const Piece& a, const Piece& b) { return a.from < b.from; });
    for (size_t i = 1; i < count_; ++i) {
      const Piece& low = pieces_[i - 1];
      if (low.from + low.size <= pieces_[i].from) continue;
      end(kCorrupt, "corrupt: live blocks overlap: %p of %zu bytes and %p of %zu bytes",
          static_cast<void*>(low.from), low.size, static_cast<void*>(pieces_[i].from), pieces_[i].size);
    }
    for (size_t i = 0; i < count_; ++i) check_contents(pieces_[i]);
  }

  size_t count() const { return count_; }

 private:
  void map() {
    void* room =
        mmap(nullptr, kRoom * sizeof(Piece), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) end(kFailed, "no memory for the probation's table");
    pieces_ = static_cast<Piece*>(room);
  }

  void shuffle() {
    Random random(count_ + 7);
    for (size_t i = count_; i > 1; --i) std::swap(pieces_[i - 1], pieces_[random.below(i)]);
  }

  static inline uint64_t seeds_ = 0;  // several threads may give the same seed: no matter
  Piece* pieces_ = nullptr;
  size_t count_ = 0;
};

constinit Table kept;

size_t how_many(size_t size) {
  return std::clamp<size_t>(12 * MiB / std::max<size_t>(size, 1), 3, 2500);
}

// A second thread allocates its own blocks and frees blocks of this one, which does the same.
void two_threads(size_t size, Random& random) {
  static constinit Table theirs, to_free;
  kept.give(to_free, kept.count() / 3);
  auto other = [size] {
    Random own(99);
    theirs.add_blocks(size, how_many(size) / 3 + 1);
    to_free.free_blocks([] { return true; });
    theirs.add_mixed(300, own);
  };
  Thread thread(other);
  kept.add_blocks(size, how_many(size) / 3 + 1);
  kept.add_mixed(300, random);
  thread.join();
  theirs.give(kept, theirs.count());
  kept.check();
}

// Frees more than a quarantine of freed blocks holds, so that every block of before comes out of it.
void churn() {
  for (size_t i = 0; i < 5000; ++i) {
    char* block = static_cast<char*>(call::malloc(4 * KiB));
    if (block == nullptr) end(kFailed, "no more memory for 4 KiB");
    block[0] = block[4 * KiB - 1] = 'c';
    call::free(block);
  }
}

}  // namespace

void keep(void* block, size_t size) {
  kept.add(block, size, Use::block);
}
void keep_unchecked(void* block, size_t size) {
  kept.add(block, size, Use::unchecked_block);
}
void borrow(void* from, size_t size) {
  kept.add(from, size, Use::borrowed);
}
void borrow_unwritten(const void* from, size_t size) {
  kept.add(const_cast<void*>(from), size, Use::unwritten);
}
void fill_with_zeros() {
  zeros = true;
}
void refill() {
  kept.refill();
}

void* in_crowd(size_t size, size_t before, size_t after) {
  kept.add_blocks(size, before);
  void* block = call::malloc(size);
  if (block == nullptr) end(kFailed, "no memory for the case itself");
  memset(block, 'b', size);
  kept.add_blocks(size, after);
  return block;
}

void* still_free() {
  void* p[4];
  for (void*& block : p) block = in_crowd(64, 4, 4);
  for (void* block : p) call::free(block);
  for (int i = 0; i < 2000; ++i) {
    void* q = call::malloc(64);
    keep(q, 64);
    if (std::find(p, p + 4, q) != p + 4) return q == p[1] ? p[2] : p[1];
  }
  return p[1];  // held back from reuse
}

void probation(size_t size) {
  constexpr char kStage[] = "@ goes on\n";  // what was told before was told by the misuse itself
  if (write(STDERR_FILENO, kStage, sizeof(kStage) - 1) < 0) _exit(kFailed);
  Random random(size);
  kept.check();
  kept.add_blocks(size, how_many(size));
  kept.add_mixed(600, random);
  kept.check();
  kept.free_blocks([&] { return random.below(2) == 0; });
  kept.add_blocks(size, how_many(size) / 2 + 1, true);
  kept.add_mixed(600, random);
  kept.check();
  two_threads(size, random);
  churn();
  kept.free_blocks([] { return true; });
  kept.add_blocks(size, how_many(size) / 2 + 1);
  kept.check();
  kept.free_blocks([] { return true; });
}

}  // namespace battery
