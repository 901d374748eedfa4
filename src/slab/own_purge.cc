#include "slab/own_purge.h"

namespace hummock::slab {
namespace {

// A walk along a list waits for each block. Together they come much sooner.
void fetch_blocks(const SlabHeader* slab) {
  constexpr size_t kLine = 64;
  const size_t size = row_of(slab).block_size, step = size < kLine ? kLine : size;
  const char* end = slab->start + slab->carved * size;
  for (const char* line = slab->start; line < end; line += step) __builtin_prefetch(line);
}

}  // namespace

void OwnPurge::begin(SlabHeader* slab) {
  *this = OwnPurge();
  fetch_blocks(slab);
  __atomic_store_n(&slab_, slab, __ATOMIC_RELEASE);  // pairs with holds(): the set is empty
  slab->purging = true;
  next_ = slab->free;
  left_ = count_own(slab);
  slab->free = end_of(slab);
  slab->live = static_cast<uint16_t>(slab->live + left_);
  Rest returned = {};
  gather(slab, &returned);
  chain_ = returned.first;
  chain_left_ = returned.count;
  held_ = left_ + chain_left_;
}

void OwnPurge::mark_some(Slice* slice) {
  mark(slab_, &set_, {&next_, &left_, &last_}, slice, [](void* block) { return next_of(block); });
  if (left_ != 0) return;
  mark(slab_, &set_, {&chain_, &chain_left_, &last_}, slice, next_remote);
  if (chain_left_ != 0 || !pay_for_set(slice)) return;
  const uint16_t gone = slab_->gone.own;
  add_pages(slab_, gone, &set_);
  const unsigned free = free_pages(slab_, set_) & ~unsigned{gone};
  if (can_purge(slab_, free)) pages_ = static_cast<uint16_t>(free);
  stay_ = static_cast<uint16_t>(~(unsigned{gone} | with_blocks(slab_, pages_)));
  last_ = nullptr;
  marked_ = true;
}

// Their blocks are no longer in use. Pages that are gone may be taken back when the purge has ended, because
// a block that begins there may reach into one that is still to be purged.
size_t OwnPurge::purge_some(Slice* slice) {
  const uint16_t pages = take_pages(&pages_, slice);
  if (pages == 0) return 0;
  const uint16_t gone = with_blocks(slab_, pages);
  const uint32_t blocks = count_gone(slab_, gone);
  // First: a page that has gone reads as zeros, and its blocks look live to a thread that frees one again.
  set_relaxed(slab_->gone.own, static_cast<uint16_t>(slab_->gone.own | gone));
  if (gone != 0) close_frees(slab_);
  const size_t bytes = pages::purge_inside(slab_, pages);
  slab_->live = static_cast<uint16_t>(slab_->live - blocks);
  held_ -= blocks;
  note_gone(slab_, blocks);
  return bytes;
}

bool OwnPurge::go_on(Slice* slice, size_t* bytes) {
  if (!marked_) mark_some(slice);
  if (!marked_) return false;
  if (!sort(slab_, set_, {&stay_, &first_, &last_}, slice, set_next)) return false;
  *bytes += purge_some(slice);
  if (pages_ != 0) return false;
  if (first_ != nullptr) put_run(slab_, first_, last_, held_);
  forget();
  return true;
}

void OwnPurge::forget() {
  slab_->purging = false;
  set_relaxed(slab_, static_cast<SlabHeader*>(nullptr));
}

HUMMOCK_RACY bool OwnPurge::holds(const SlabHeader* slab, const void* block) const {
  if (__atomic_load_n(&slab_, __ATOMIC_ACQUIRE) != slab) return false;
  const size_t number = Numbers(slab).of(block);
  return number != Numbers::kNone && set_.has(number) && relaxed(slab_) == slab;
}

HUMMOCK_RACY void* OwnPurge::list() const {
  return next_;
}
HUMMOCK_RACY void* OwnPurge::chain() const {
  return chain_;
}

}  // namespace hummock::slab
