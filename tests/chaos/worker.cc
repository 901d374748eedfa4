#include "worker.h"

#include <errno.h>

#include <algorithm>

#include "calls.h"
#include "refuse.h"

namespace chaos {
namespace {

bool reads_zero(const char* block, size_t size) {
  constexpr size_t kEnd = 4096;
  if (size <= 2 * kEnd) return support::all_zero(block, 0, size);
  return support::all_zero(block, 0, kEnd) && support::all_zero(block, size / 2, size / 2 + 64) &&
         support::all_zero(block, size - kEnd, size);
}

// Where a block that should read as zeros does not, and what is there.
void tell_first(const Block& block) {
  size_t at = 0;
  while (at < block.size && block.address[at] == 0) ++at;
  size_t end = at;
  while (end < block.size && block.address[end] != 0) ++end;
  fprintf(stderr, "chaos: not zero from byte %zu to %zu, begins with %02x\n", at, end,
          at < block.size ? static_cast<unsigned char>(block.address[at]) : 0u);
}

}  // namespace

void Worker::run(size_t first, size_t steps) {
  free_at_thread_end(1000);
  for (size_t i = first; i < first + steps; ++i) step(i);
  refuse::one_in(0, 0);
  doing = "nothing";
}

void Worker::step(size_t number) {
  Random random((settings.seed * 0x2545F4914F6CDD1Du + index_) * 0x9E3779B97F4A7C15u + number);
  at = number;
  if (settings.mode == "refuse") {
    static constexpr unsigned kRates[] = {0, 0, 0, 50, 6, 1};
    const unsigned rate = kRates[random.below(6)];
    refuse::one_in(rate, random.next());
  }
  if (random.below(100) < 96) return work_on(random);
  rare(random);
}

void Worker::work_on(Random& random) {
  Block& block = slots_[random.below(kSlots)];
  const size_t dice = random.below(100);
  if (!got_.empty() && dice < 20) {
    check(got_.back());
    give(random, got_.back());
    got_.pop_back();
    return;
  }
  if (block.address == nullptr) return begin(random, block);
  check(block);
  if (dice < 55) return give(random, block);
  if (dice < 90) return resize(random, block);
  if (dice < 97) return post(random);
}

// Most are small, a few are long, up to 100 MiB.
size_t Worker::draw_size(Random& random) const {
  static constexpr size_t kMost[] = {64,    256,   1024,      1024,    8192,
                                     65536, 65536, 600 << 10, 4 << 20, size_t{100} << 20};
  const size_t kind = random.below(10);
  return random.size_up_to(kind == 9 && !random.one_in(4) ? size_t{1} << 20 : kMost[kind]);
}

void Worker::missed(const Block& block, bool sets_errno) {
  ++misses_;
  require(settings.may_fail(), "memory, for the system refuses none", block);
  if (sets_errno) require(errno == ENOMEM, "errno of a failed request", block);
}

void Worker::admit(Random& random, Block& block, void* address) {
  block.address = static_cast<char*>(address);
  block.usable = block.how == How::plugin ? block.size : calls::usable(address);
  require(support::is_aligned(address, block.alignment), "the alignment asked for", block);
  require(block.usable >= block.size, "usable size of at least the size asked for", block);
  block.filled = random.one_in(4) ? block.usable : block.size;
  block.tag = (++tags_ << 8 | index_) * 0x9E3779B97F4A7C15u ^ reinterpret_cast<uintptr_t>(address);
  support::fill(address, block.tag, block.filled);
  live_ += block.size;
}

void Worker::begin(Random& random, Block& block) {
  block = {};
  block.size = draw_size(random);
  if (live_ + block.size > kMostLive) block.size %= 4096;
  note(1, block.size);
  errno = 0;
  void* address = ask(random, block);
  if (address == nullptr) return missed(block, block.how != How::made && block.how != How::made_aligned);
  admit(random, block, address);
}

void* Worker::ask(Random& random, Block& block) {
  const size_t how = random.below(16);
  const size_t alignment = size_t{1} << random.between(4, random.one_in(8) ? 25 : 13);
  const auto aligned = [&](How kind) {
    block.how = kind;
    block.alignment = alignment;
    return alignment;
  };
  block.alignment = 16;
  void* address = nullptr;
  int error = 0;
  switch (how) {
    case 0:
    case 1:
      doing = "calloc";
      address = calls::get_zero(1, block.size);
      if (address != nullptr && !reads_zero(static_cast<char*>(address), block.size)) {
        block.address = static_cast<char*>(address);
        tell_first(block);
        require(false, "zeros from calloc", block);
      }
      return address;
    case 2:
      doing = "memalign";
      return calls::get_aligned(aligned(How::aligned), block.size);
    case 3:
      doing = "aligned_alloc";
      return calls::get_aligned_c(aligned(How::aligned), block.size);
    case 4:
      doing = "posix_memalign";
      error = calls::get_posix(&address, aligned(How::aligned), block.size);
      require(error == 0 || error == ENOMEM, "posix_memalign's error");
      if (error != 0) errno = error;
      return error == 0 ? address : nullptr;
    case 5:
      doing = "valloc";
      block.alignment = 4096;
      block.how = How::aligned;
      return calls::get_pages(block.size);
    case 6:
    case 7:
      doing = "operator new";
      block.how = How::made;
      return calls::get_new(block.size);
    case 8:
      doing = "operator new, aligned";
      return calls::get_new_aligned(block.size, aligned(How::made_aligned));
    case 9: {
      void* heap = heaps_[random.below(kHeaps)];
      if (heap == nullptr) return calls::get(block.size);
      doing = "heap_malloc";
      block.how = How::heap;
      block.heap = heap;
      return hummock_heap_malloc(heap_of(heap), block.size);
    }
    default:
      doing = "malloc";
      return calls::get(block.size);
  }
}

void Worker::resize(Random& random, Block& block) {
  const size_t size =
      std::max<size_t>(1, random.one_in(2) ? draw_size(random) : block.size + random.below(block.size + 100));
  if (block.how == How::made || block.how == How::made_aligned || live_ + size > kMostLive) return;
  note(2, size);
  doing = "realloc";
  errno = 0;
  void* moved = block.how == How::heap ? hummock_heap_realloc(heap_of(block.heap), block.address, size)
                : random.one_in(4)     ? calls::resize_array(block.address, size, 1)
                                       : calls::resize(block.address, size);
  if (moved == nullptr) {
    check(block);
    return missed(block, true);
  }
  require(support::intact(moved, block.tag, block.filled, std::min(size, block.size)),
          "realloc keeps the contents", block);
  live_ -= block.size;
  block.size = size;
  block.alignment = size > 8 ? 16 : 8;
  if (block.how != How::heap) block.how = How::plain;
  admit(random, block, moved);
}

void Worker::give(Random& random, Block& block) {
  note(3, block.size);
  live_ -= block.size;
  release(block, random.below(4));
}

void Worker::release(Block& block, size_t how) {
  doing = "free";
  errno = 4711;
  switch (block.how) {
    case How::made:
      calls::give_new(block.address, block.size);
      break;
    case How::made_aligned:
      calls::give_new_aligned(block.address, block.size, block.alignment);
      break;
    case How::heap:
      if (how == 0) {
        hummock_free(block.address);
      } else {
        hummock_heap_free(heap_of(block.heap), block.address);
      }
      break;
    default:
      calls::give(block.address);
  }
  require(errno == 4711, "free keeps errno", block);
  block = {};
}

// To another worker, which gets it after this round. A heap's blocks stay: the heap may be ended.
void Worker::post(Random& random) {
  const size_t to = random.below(settings.threads);
  Block& block = slots_[random.below(kSlots)];
  if (block.address == nullptr || block.how == How::heap || !settings.has("post")) return;
  note(4, block.size);
  live_ -= block.size;
  posts_[to].push_back(block);
  block = {};
}

void Worker::receive(std::vector<Block>& blocks) {
  for (const Block& block : blocks) {
    live_ += block.size;
    got_.push_back(block);
  }
  blocks.clear();
}

void Worker::collect(std::vector<Block>* all) const {
  for (const Block& block : slots_) {
    if (block.address != nullptr) all->push_back(block);
  }
  all->insert(all->end(), got_.begin(), got_.end());
}

void Worker::finish() {
  for (Block& block : got_) check(block), release(block, 1);
  got_.clear();
  for (Block& block : slots_) {
    check(block);
    if (block.address != nullptr) release(block, 1);
  }
  for (void*& heap : heaps_) hummock_heap_destroy(heap_of(heap)), heap = nullptr;
}

}  // namespace chaos
