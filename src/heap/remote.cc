// Remote frees: gathered in the heap's remote cache and handed over together, with one compare-and-swap for
// each slab.
#include <string.h>

#include "heap/idle.h"
#include "heap/refill.h"
#include "heap/release.h"
#include "os/lock.h"
#include "os/os.h"
#include "shard/shard.h"

namespace hummock::heap {
namespace {

// Puts a slab whose queued flag the caller set into its owner's inbox. The flag makes the caller the only one
// to do so, and inbox_next its own until then. False if nobody is there to read the inbox.
bool post(SlabHeader* slab) {
  const uintptr_t owner = owner_of(slab) & ~kDirect;
  if (owner == kNobody || owner == kShared) return false;
  Heap* heap = reinterpret_cast<Heap*>(owner);
  SlabHeader* head = __atomic_load_n(&heap->inbox, __ATOMIC_RELAXED);
  do {
    if (head == kSealed) return false;
    slab->inbox_next = head;
    // release: pairs with the exchange in read_inbox.
  } while (!__atomic_compare_exchange_n(&heap->inbox, &head, slab, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
  return true;
}

}  // namespace

void hand_over(SlabHeader* slab, void* first, void* last, uint32_t count, uint64_t gone) {
  const slab::Pushed pushed = slab::push_remote(slab, first, last, count, gone);
  if ((pushed.old & slab::kSharedBit) != 0) {
    shard::after_remote_free(slab, pushed.old, count);
  } else if (pushed.must_queue && !post(slab)) {
    unqueue(slab);  // the owner left between our push and now
  }
  note_freed();
}

void unqueue(SlabHeader* slab) {
  for (;;) {
    // From here others may queue it again. acq_rel: the next writer of inbox_next comes after our reader.
    uint64_t word = __atomic_and_fetch(&slab->remote, ~slab::kQueued, __ATOMIC_ACQ_REL);
    // While the flag was set, nobody else could notify the slab's present owner, or its shard.
    if ((word & slab::kSharedBit) != 0) return shard::reconsider(slab);
    const uint32_t count = slab::count_of(word);
    if (count == 0 || count < __atomic_load_n(&slab->notify, __ATOMIC_RELAXED)) return;
    const uintptr_t owner = owner_of(slab) & ~kDirect;
    if (owner == kNobody || owner == kShared)
      return;  // the thread that gives it away sees the count, and acts
    // acq_rel: as in push_remote. If the word has changed, whoever changed it looks, because the flag is
    // clear.
    if (!__atomic_compare_exchange_n(&slab->remote, &word, word | slab::kQueued, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED)) {
      return;
    }
    if (post(slab)) return;
  }
}

namespace {

// The link of a block in a remote cache says in whose.
uintptr_t waiting_in(const Heap* heap) {
  return slab::link_to(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(heap) + kWaiting));
}

// Several threads may free one block at the same time, and all may have seen it live. One gets through:
//   1. Each notes the check (note_check), sees that the block is live, and stores its own mark in the link
//      (mark_waiting).
//   2. When it hands the block over, it sees that the check is as it was, and stores there (take_check).
//   3. It sees that its mark is still in the link (has_mark).
// A fence is before 2 and before 3. Suppose A and B both got through, and A stored its mark first. A found it
// in 3, so B stored later, and B found in 2 what A had stored in the check: a link of the kind kRemote, which
// no live block has. There is no exchange, because it would wait for the block's cache line, which is another
// processor's.
void mark_waiting(uintptr_t mark, void* block) {
  if (!slab::kMarksLinks) return slab::set_link(block, mark, slab::kRemote);
  set_relaxed(slab::link_word(block), mark);
}

bool take_check(void* block, uint32_t check, const void* next) {
  uintptr_t& word = slab::check_word(block);
  if (slab::kMarksLinks && static_cast<uint32_t>(relaxed(word)) != check) return false;
  set_relaxed(word, slab::link_to(next) ^ slab::kRemote);
  return true;
}

bool has_mark(void* block, uintptr_t mark) {
  return relaxed(slab::link_word(block)) == mark;
}

// Blocks of one slab that are handed over together. The first is the one that was freed last.
struct Chain {
  SlabHeader* slab;
  void* first;
  void* last;
  uint32_t count;
  uint8_t next;  // the next chain of the same bucket
};

constexpr uint8_t kNone = kRemoteBlocks;

struct Chains {
  uint8_t count;
  uint8_t in_bucket[kRemoteBlocks];  // the first chain of each bucket, or kNone
  Chain chain[kRemoteBlocks];
};

Chain& chain_of(Chains& chains, SlabHeader* slab) {
  uint8_t& bucket = chains.in_bucket[reinterpret_cast<uintptr_t>(slab) / sizeof(SlabHeader) % kRemoteBlocks];
  for (uint8_t i = bucket; i != kNone; i = chains.chain[i].next) {
    if (chains.chain[i].slab == slab) return chains.chain[i];
  }
  Chain& chain = chains.chain[chains.count];
  chain = {slab, nullptr, nullptr, 0, bucket};
  bucket = chains.count++;
  os::fetch_for_write(&slab->remote);
  return chain;
}

// Makes the chains. Reports blocks that another thread freed too; see above.
void chain_up(uintptr_t mark, const RemoteCache& remote, Chains& chains) {
  chains.count = 0;
  memset(chains.in_bucket, kNone, sizeof chains.in_bucket);
  uint32_t marked = 0;  // a bit for each block that has a mark
  os::full_fence();
  for (unsigned i = 0; i < remote.count; ++i) {
    void* block = remote.blocks[i];
    SlabHeader* slab = remote.slabs[i];
    // Otherwise the slab has ended: another free of one of its blocks was its last.
    if (__builtin_expect(slab->kind != Kind::slab, false)) bad_bin(block, slab->size_class);
    Chain& chain = chain_of(chains, slab);
    if (__builtin_expect(slab::is_tiny(slab), false)) {
      slab::link_tiny(slab, block, chain.first);
    } else {
      marked |= 1u << i;
      if (__builtin_expect(!take_check(block, remote.checks[i], chain.first), false)) {
        bad_bin(block, slab->size_class);
      }
    }
    if (chain.count++ == 0) chain.last = block;
    chain.first = block;
  }
  os::full_fence();
  for (; marked != 0; marked &= marked - 1) {
    const unsigned i = base::lowest_bit(marked);
    void* block = remote.blocks[i];
    if (__builtin_expect(!has_mark(block, mark), false)) bad_bin(block, remote.slabs[i]->size_class);
    set_relaxed(slab::link_word(block), relaxed(slab::check_word(block)) ^ slab::kRemote);
  }
}
static_assert(kRemoteBlocks <= 32);

// Appends a block to the remote cache.
__attribute__((always_inline)) inline void put(RemoteCache& remote, uintptr_t mark, SlabHeader* slab, void* p,
                                               uint32_t check) {
  const unsigned i = remote.count;
  remote.blocks[i] = p;
  remote.slabs[i] = slab;
  remote.checks[i] = check;
  if (!slab::is_tiny(slab)) mark_waiting(mark, p);
  remote.count = i + 1;
}

}  // namespace

void flush_remote_now(Heap* heap) {
  RemoteCache& remote = heap->remote;
  Chains chains;
  chain_up(waiting_in(heap), remote, chains);
  heap->handed_over += remote.bytes;
  remote.count = 0;  // first: blocks that are handed over must not be listed here (heap/diagnose.cc)
  remote.bytes = 0;
  for (const Chain* chain = chains.chain; chain != chains.chain + chains.count; ++chain) {
    hand_over(chain->slab, chain->first, chain->last, chain->count);
  }
}

// What became free may have been given back with one system call. One flush may empty many slabs, so while
// something is left each free does a part of it.
__attribute__((noinline)) void give_back_more(Heap* heap) {
  if (pages::is_behind()) {
    tick(kCallsAfterFree);
  } else if (heap->handed_over >= kFreedPerLook) {
    heap->handed_over = look_after_frees() ? kFreedPerLook : 0;
  }
}

void release_remote(Heap* heap, SlabHeader* slab, void* p, uint32_t check) {
  RemoteCache& remote = heap->remote;
  put(remote, waiting_in(heap), slab, p, check);
  remote.bytes += slab::row_of(slab).block_size;
  if (remote.count == kRemoteBlocks || remote.bytes >= kRemoteBytes) {
    flush_remote_now(heap);
    give_back_more(heap);
  } else if (__builtin_expect(pages::is_behind(), false)) {
    give_back_more(heap);
  }
}

uint32_t look_once_more(SlabHeader* slab, void* p) {
  if (slab::is_tiny(slab)) {
    if (!slab::mark_free(slab, p)) slab::double_free(slab, p, "free");
    return 0;
  }
  const uint32_t check = note_check(p);
  if (slab::kMarksLinks && slab::looks_free(p)) slab::double_free(slab, p, "free");
  return check;
}

void claim_block(SlabHeader* slab, void* p) {
  RemoteCache alone;
  alone.count = 0;
  // Differs from other threads' marks and from all links of a list.
  const uintptr_t mark = slab::link_to(reinterpret_cast<void*>(os::thread_address()));
  put(alone, mark, slab, p, look_once_more(slab, p));
  Chains chains;
  chain_up(mark, alone, chains);
}

void release_remote_now(SlabHeader* slab, void* p) {
  claim_block(slab, p);
  hand_over(slab, p, p, 1);
}

}  // namespace hummock::heap
