// A purge of pages that hold nothing but free blocks of a slab, by the slab's owner, in slices. It takes what
// is in the slab's own list and what others freed; meanwhile these blocks count as in use. What stays of them
// becomes the slab's own list.
#ifndef HUMMOCK_SLAB_OWN_PURGE_H
#define HUMMOCK_SLAB_OWN_PURGE_H

#include "slab/block_set.h"

namespace hummock::slab {

class OwnPurge {
 public:
  // For one that is not under way. The slab must stay the caller's until the purge has ended.
  void begin(SlabHeader* slab);
  SlabHeader* slab() const { return slab_; }  // null: none is under way
  // Adds the bytes that it purged to *bytes. True: it has ended, and the slab may have no block in use.
  bool go_on(Slice* slice, size_t* bytes);
  // The slab ends, or all is done.
  void forget();
  uint32_t held() const { return slab_ == nullptr ? 0 : held_; }  // blocks
  uint32_t left() const { return held_; }                         // when it has ended: of them, not purged

  // For a search by any thread: does it hold this free block, or may the block stand in one of these lists?
  bool holds(const SlabHeader* slab, const void* block) const;
  void* list() const;
  void* chain() const;

 private:
  void mark_some(Slice* slice);
  size_t purge_some(Slice* slice);

  SlabHeader* slab_ = nullptr;
  void* next_ = nullptr;  // of the slab's own list: so many blocks are not in the set yet
  uint32_t left_ = 0;
  uint32_t chain_left_ = 0;
  void* chain_ = nullptr;  // the same of what others freed
  void* first_ = nullptr;  // the new list
  void* last_ = nullptr;
  uint32_t held_ = 0;    // how many blocks are in no list of the slab's
  uint16_t pages_ = 0;   // still to be purged
  uint16_t stay_ = 0;    // pages whose blocks are still to be put into the new list
  bool marked_ = false;  // all blocks are in the set
  BlockSet set_;
};

}  // namespace hummock::slab

#endif  // HUMMOCK_SLAB_OWN_PURGE_H
