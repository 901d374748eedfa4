#include "modes/quarantine.h"

#include "base/options.h"
#include "heap/user.h"
#include "modes/checked.h"
#include "os/os.h"
#include "pages/metadata.h"
#include "trace/backtrace.h"

namespace hummock::modes::checked {
namespace {

// Blocks that were freed one after another leave together: so their lines, which are cold by then, are
// fetched while others are looked at, and their heap's lock is taken once.
constexpr unsigned kTogether = 29;
struct Chunk {
  Chunk* next;   // the one that was begun after this, or a spare one
  size_t bytes;  // of its blocks, and of heaps that end when these have left
  size_t count;
  Record* blocks[kTogether];
};
static_assert(sizeof(void*) < 8 || sizeof(Chunk) == 256);

// All guarded by the lock.
os::Lock<os::Rank::checked> lock;
Chunk* oldest;
Chunk* newest;
size_t bytes;  // of all chunks
Chunk* spare;

// The last blocks that are too large for the quarantine keep their addresses but not their memory, so that a
// thread which frees one once more finds its record and not a hole.
constexpr unsigned kHollow = 8;
Record* hollow[kHollow];
unsigned next_hollow;

// ---- The lists; the caller has the lock ---------------------------------------------------------

Chunk* add_chunk() {
  Chunk* chunk = spare;
  if (chunk != nullptr) {
    spare = chunk->next;
  } else {
    chunk = static_cast<Chunk*>(pages::new_record(sizeof(Chunk)));
    if (chunk == nullptr) return nullptr;
  }
  chunk->next = nullptr;
  chunk->bytes = 0;
  chunk->count = 0;
  (newest != nullptr ? newest->next : oldest) = chunk;
  newest = chunk;
  return chunk;
}

// A chunk is a small part of the quarantine, so that little more than must leaves at once.
bool push(Record* record, size_t most) {
  Chunk* chunk = newest;
  if (chunk == nullptr || chunk->count == kTogether || chunk->bytes > most / 32) chunk = add_chunk();
  if (chunk == nullptr) return false;
  chunk->blocks[chunk->count++] = record;
  chunk->bytes += record->room();
  bytes += record->room();
  return true;
}

// Takes out what exceeds the bound, oldest first; there is some.
Chunk* take_oldest(size_t most) {
  Chunk* first = oldest;
  Chunk* last = nullptr;
  for (; oldest != nullptr && bytes > most; oldest = last->next) {
    last = oldest;
    bytes -= last->bytes;
  }
  last->next = nullptr;
  if (oldest == nullptr) newest = nullptr;
  return first;
}

inline Chunk* take_surplus(size_t most) {
  return oldest == nullptr || bytes <= most ? nullptr : take_oldest(most);
}

Record* exchange_hollow(Record* record) {
  Record*& place = hollow[next_hollow++ % kHollow];
  Record* before = place;
  place = record;
  return before;
}

// ---- Out of quarantine for good -----------------------------------------------------------------

void end(Record* record) {
  if (!is_whole(record)) say_overwritten("free", record);
  check_guards("free", record);
  check_poison("free", record);
  // The state first: who sees the other seal, sees this (check_all).
  set_state(record, State::none);
  __atomic_store_n(&record->seal, uintptr_t{0}, __ATOMIC_RELEASE);
  announce_room(record);
}

// Blocks of one heap, ended.
class Leavers {
 public:
  ~Leavers() { give_back(); }
  void add(Record* record) {
    SlabHeader* header = pages::find_slab(record);
    if (header->user != heap_) give_back();
    heap_ = header->user;
    blocks_[count_++] = {header, record};
  }

 private:
  void give_back() {
    if (count_ != 0) heap::user_take_back(heap_, blocks_, count_);
    count_ = 0;
  }

  UserHeap* heap_ = nullptr;
  unsigned count_ = 0;
  heap::OwnBlock blocks_[kTogether];
};

void let_go(Record* record) {
  end(record);
  if (record->hollow && !allow_inside(record)) return;  // its addresses are lost
  Leavers leavers;
  leavers.add(record);
}

void fetch(const Record* record) {
  for (size_t i = 0; i < 4; ++i) __builtin_prefetch(reinterpret_cast<const char*>(record) + 64 * i);
}

void let_go(Chunk* chunk) {
  constexpr unsigned kAhead = 6;
  Leavers leavers;
  for (size_t i = 0; i < chunk->count && i < kAhead; ++i) fetch(chunk->blocks[i]);
  for (size_t i = 0; i < chunk->count; ++i) {
    if (i + kAhead < chunk->count) fetch(chunk->blocks[i + kAhead]);
    end(chunk->blocks[i]);
    leavers.add(chunk->blocks[i]);
  }
}

void let_go_all(Chunk* chunks) {
  Chunk* last = chunks;
  for (Chunk* chunk = chunks; chunk != nullptr; chunk = chunk->next) {
    let_go(chunk);
    last = chunk;
  }
  os::LockGuard guard(lock);
  last->next = spare;
  spare = chunks;
}

void put_hollow(Record* record) {
  record->hollow = true;
  deny_inside(record);
  Record* before;
  {
    os::LockGuard guard(lock);
    before = exchange_hollow(record);
  }
  if (before != nullptr) let_go(before);
}

}  // namespace

void put_in_quarantine(Record* record) {
  const size_t most = options::values.quarantine;
  if (record->size > most && may_be_hollow(record)) return put_hollow(record);
  bool taken;
  Chunk* surplus;
  {
    os::LockGuard guard(lock);
    taken = push(record, most);
    surplus = take_surplus(most);
  }
  if (!taken) let_go(record);
  if (surplus != nullptr) let_go_all(surplus);
}

void empty_quarantine() {
  Chunk* surplus;
  {
    os::LockGuard guard(lock);
    surplus = take_surplus(0);
  }
  if (surplus != nullptr) let_go_all(surplus);
  for (unsigned i = 0; i < kHollow; ++i) {
    Record* before;
    {
      os::LockGuard guard(lock);
      before = exchange_hollow(nullptr);
    }
    if (before != nullptr) let_go(before);
  }
}

void charge_quarantine(size_t kept) {
  Chunk* surplus;
  {
    os::LockGuard guard(lock);
    if (newest == nullptr) return;
    newest->bytes += kept;
    bytes += kept;
    surplus = take_surplus(options::values.quarantine);
  }
  if (surplus != nullptr) let_go_all(surplus);
}

void at_fork(os::ForkStep step) {
  if (step == os::ForkStep::in_child) trace::forget_thread_number();
  lock.at_fork(step);
}
bool is_locked() {
  return lock.is_held();
}

}  // namespace hummock::modes::checked
