// Remote frees: gathered in the heap's remote cache and handed over together, with one compare-and-swap for
// each slab. A block waits in the cache, then in one of its chains, then in its slab's remote word.
#include <string.h>

#include "heap/remote.h"

#include "heap/diagnose.h"
#include "heap/heap_pool.h"
#include "heap/idle.h"
#include "heap/inbox.h"
#include "heap/release.h"
#include "heap/resting.h"
#include "os/lock.h"
#include "os/os.h"
#include "shard/shard.h"

namespace hummock::heap {

__attribute__((noinline)) bool after_push(SlabHeader* slab, bool must_queue) {
  if (!must_queue) {
    shard::settle(slab);
  } else if (post(slab)) {
    return false;
  } else {
    unqueue(slab);  // the owner left between the push and now
  }
  return true;
}

namespace {

// Several threads may free one block at the same time, and all may have seen it live. One gets through:
//   1. Each notes the check (note_check), sees that the block is live, and stores its own mark in the link
//      (mark_waiting).
//   2. When it hands the block over, it sees that the check is as it was, and stores there (take_check).
//   3. It sees that its mark is still in the link (has_mark).
// A fence is before 2 and before 3. Suppose A and B both got through, and A stored its mark first. A found it
// in 3, so B stored later, and B found in 2 what A had stored in the check: a link of the kind kRemote, which
// no live block has. There is no exchange, because it would wait for the block's cache line, which is another
// processor's.
//
// The slab's owner only looks, and then stores link and check. If its stores come before another's mark, that
// one finds a new check in 2. But where the program wrote nothing to a block, its check is still that of the
// list it was in, and the owner may store the same. So change_check changes it first.
bool take_check(void* block, uint32_t check, const void* next) {
  uintptr_t& word = slab::check_word(block);
  if (slab::kMarksLinks && static_cast<uint32_t>(relaxed(word)) != check) return false;
  set_relaxed(word, slab::link_to(next) ^ slab::kRemote);
  return true;
}

bool has_mark(void* block, uintptr_t mark) {
  return relaxed(slab::link_word(block)) == mark;
}

constexpr uint8_t kNone = kRemoteBlocks;  // no chain
static_assert(kRemoteBlocks <= UINT8_MAX);

// The slab of a block that was freed. Otherwise it has ended: another free of one of its blocks was its last.
void check_kind(const SlabHeader* slab, const void* block) {
  if (__builtin_expect(kind_of(slab) != Kind::slab, false)) bad_bin(block, slab->size_class);
}

// Begins a chain with its first block.
RemoteChain* begin_chain(RemoteCache& remote, SlabHeader* slab, void* block, uint8_t* bucket) {
  check_kind(slab, block);
  RemoteChain* chain = &remote.chains[remote.chain_count];
  *chain = {slab, nullptr, block, 0, *bucket};
  *bucket = remote.chain_count++;
  os::fetch_for_write(&slab->remote);
  return chain;
}

RemoteChain* chain_of(RemoteCache& remote, SlabHeader* slab, void* block) {
  uint8_t& bucket = remote.in_bucket[reinterpret_cast<uintptr_t>(slab) / sizeof(SlabHeader) % kRemoteBlocks];
  for (uint8_t i = bucket; i != kNone; i = remote.chains[i].next) {
    if (remote.chains[i].slab == slab) return &remote.chains[i];
  }
  return begin_chain(remote, slab, block, &bucket);
}

// Steps 2 and 3 for one block; between them is a fence. `next` is the block after it in its chain, or null.
void take(const SlabHeader* slab, void* block, uint32_t check, const void* next) {
  if (__builtin_expect(!take_check(block, check, next), false)) bad_bin(block, slab->size_class);
}

void confirm(const SlabHeader* slab, void* block, uintptr_t mark) {
  if (__builtin_expect(!has_mark(block, mark), false)) bad_bin(block, slab->size_class);
  set_relaxed(slab::link_word(block), relaxed(slab::check_word(block)) ^ slab::kRemote);
}

// Makes chains of all blocks. Reports those that another thread freed too; see above.
void chain_up(Heap* heap) {
  RemoteCache& remote = heap->remote;
  const unsigned count = remote.count;
  remote.next_chain = remote.chain_count = 0;
  memset(remote.in_bucket, kNone, sizeof remote.in_bucket);
  os::full_fence();
  for (unsigned i = 0; i < count; ++i) {
    void* block = remote.blocks[i];
    RemoteChain* chain = chain_of(remote, remote.slabs[i], block);
    take(remote.slabs[i], block, remote.checks[i], chain->first);
    chain->first = block;
    ++chain->count;
  }
  os::full_fence();
  const uintptr_t mark = waiting_in(heap);
  for (unsigned i = 0; i < count; ++i) confirm(remote.slabs[i], remote.blocks[i], mark);
  heap->handed_over += remote.bytes;
  heap->uncounted += remote.bytes;
  if (heap->uncounted >= kFreedPerLook) settle_freed(heap);
  remote.count = remote.bytes = remote.at_ease = 0;
}

bool has_chains(const RemoteCache& remote) {
  return remote.next_chain != remote.chain_count;
}

// One call hands over so many chains at most. One whose slab ends or changes hands counts as eight.
constexpr unsigned kMostChains = 16;
constexpr unsigned kSettled = 8;

// While slabs wait for a purge, so that one call does not do both in full.
constexpr unsigned kFewChains = 4;

// How many blocks may come before the next look.
uint32_t blocks_at_ease(const RemoteCache& remote) {
  const bool busy = has_chains(remote) || relaxed(emptied_wait) || pages::is_behind();
  return busy ? 0 : kRemoteBlocks - 1;
}

// True: it purged nothing.
bool hand_over_some(Heap* heap) {
  RemoteCache& remote = heap->remote;
  const bool look = returned_too_much();
  const bool serves = relaxed(parked_heap_waits);
  if (serves) serve_parked();
  const unsigned most = serves || relaxed(emptied_wait) ? kFewChains : kMostChains;
  for (unsigned done = 0; done < most && has_chains(remote);) {
    // First it leaves the cache: its blocks may be somebody's when they are handed over, and must not be
    // found here then (heap/diagnose.cc).
    const RemoteChain& chain = remote.chains[remote.next_chain++];
    const bool settled = hand_over(chain.slab, chain.first, chain.last, chain.count);
    done += settled ? kSettled : 1;
    if (look && !settled && slab::has_emptied(chain.slab, chain.count)) note_emptied(chain.slab);
  }
  const bool purges = relaxed(emptied_wait);
  if (purges) purge_emptied();
  remote.at_ease = blocks_at_ease(remote);
  return !purges;
}

}  // namespace

bool flush_some_remote(Heap* heap) {
  RemoteCache& remote = heap->remote;
  if (has_chains(remote)) {
    hand_over_some(heap);
  } else if (remote.count != 0) {
    chain_up(heap);
  } else {
    return false;
  }
  return true;
}

// What became free may have been given back with one system call. One flush may empty many slabs, so while
// something is left each free does a part of it.
void give_back_more(Heap* heap) {
  if (pages::is_behind()) {
    tick(kCallsAfterFree);
  } else if (heap->handed_over >= kFreedPerLook) {
    heap->handed_over = look_after_frees() ? kFreedPerLook : 0;
  }
}

__attribute__((noinline)) void look_at_remote(Heap* heap) {
  RemoteCache& remote = heap->remote;
  const bool enough = remote.count == kRemoteBlocks || remote.bytes >= kRemoteBytes;
  if (enough && !has_chains(remote)) {
    const bool few = remote.count <= kMostChains;
    chain_up(heap);
    if (!few) return;  // the next frees hand over: one call does not do both
  }
  if (hand_over_some(heap)) give_back_more(heap);
  // Each call hands over a chain at least, so all are gone when so many blocks have come again.
  if (remote.count == kRemoteBlocks) chain_up(heap);
}

void release_remote(Heap* heap, SlabHeader* slab, void* p, uint32_t check) {
  add_remote(heap, slab, p, check);
}

namespace {

uint32_t change_check(void* block) {
  constexpr uintptr_t kChanged = 0;
  uintptr_t& word = slab::check_word(block);
  if (slab::looks_free(block)) return static_cast<uint32_t>(relaxed(word));
  // seq_cst: before the look. If the owner's check came first, the look finds its link, too; if it comes
  // later, it takes the place of kChanged.
  const uintptr_t before = __atomic_exchange_n(&word, kChanged, __ATOMIC_SEQ_CST);
  if (!slab::looks_free(block)) return static_cast<uint32_t>(kChanged);
  // The block is in the owner's list, and must be found there.
  uintptr_t changed = kChanged;
  __atomic_compare_exchange_n(&word, &changed, before, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return static_cast<uint32_t>(before);
}

}  // namespace

uint32_t note_check(void* block) {
  const uintptr_t check = read_check(block);
  return slab::is_like_check(check) ? change_check(block) : static_cast<uint32_t>(check);
}

uint32_t look_once_more(SlabHeader* slab, void* p) {
  const uint32_t check = note_check(p);
  if (slab::kMarksLinks && slab::looks_free(p)) slab::double_free(slab, p, "free");
  return check;
}

void claim_block(SlabHeader* slab, void* p) {
  if (slab::is_tiny(slab)) {
    if (!slab::mark_free(slab, p)) slab::double_free(slab, p, "free");
    return;
  }
  // Differs from other threads' marks and from all links of a list.
  const uintptr_t mark = slab::link_to(reinterpret_cast<void*>(os::thread_address()));
  const uint32_t check = look_once_more(slab, p);
  mark_waiting(mark, p);
  os::full_fence();
  check_kind(slab, p);
  take(slab, p, check, nullptr);
  os::full_fence();
  confirm(slab, p, mark);
}

void release_remote_now(SlabHeader* slab, void* p) {
  slab::note_returned(static_cast<ptrdiff_t>(slab::row_of(slab).block_size));
  hand_over(slab, p, p, 1);
}

}  // namespace hummock::heap
