// free, where the slab is not the caller's own.
#include "heap/release.h"

#include "heap/attach.h"
#include "heap/checked.h"
#include "heap/diagnose.h"
#include "heap/large.h"
#include "heap/refill.h"
#include "heap/user.h"
#include "shard/shard.h"

namespace hummock::heap {
namespace {

bool is_shared(const SlabHeader* slab) {
  return (__atomic_load_n(&slab->remote, __ATOMIC_ACQUIRE) & slab::kSharedBit) != 0;
}

void release_in_slab(SlabHeader* slab, void* p) {
  slab::check_block(slab, p, "free");
  Heap* heap = thread_heap;
  if (heap == &empty_heap) heap = attach();
  if (heap == nullptr || heap == &ended_heap) return release_remote_now(slab, p);
  const uintptr_t owner = owner_of(slab) & ~kFull;
  if (owner == reinterpret_cast<uintptr_t>(heap)) {  // full, or p stands in an inner slot
    if (slab->full) no_longer_full(heap, slab);
    return release_own(heap, slab, p);
  }
  // Its own thread frees into a slab it gave away: it takes it back, and will keep it.
  if (relaxed(slab->home) == heap && is_shared(slab) && shard::reclaim(slab, heap)) {
    slab->home_frees = true;
    slab::put_block(slab, p);
    file_slab(heap, slab);
    return;
  }
  release_remote(heap, slab, p);
}

}  // namespace

void release_slow(void* p) {
  if (p == nullptr) return;
  if (is_checked()) return checked::release("free", p);
  SlabHeader* header = pages::find_header(p);
  if (header == nullptr) bad_pointer("free", p);
  if (header->kind == Kind::interior) {
    header -= header->back;
    // The slab may be this thread's after all, only not its first slot.
    if (owner_of(header) == reinterpret_cast<uintptr_t>(thread_heap)) {
      slab::check_block(header, p, "free");
      return release_own(thread_heap, header, p);
    }
  }
  switch (header->kind) {
    case Kind::slab:
      return release_in_slab(header, p);
    case Kind::own_slab:
      return user_release(header->home, p);
    case Kind::large:
    case Kind::huge:
      if (p != header->start) bad_pointer("free", p);
      if (header->home != nullptr) return user_release(header->home, p);
      release_large(header);
      if (pages::purge_pending()) pages::tick();
      return;
    default:
      bad_pointer("free", p);
  }
}

}  // namespace hummock::heap
