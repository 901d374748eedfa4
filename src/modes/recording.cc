#include "modes/recording.h"

#include "base/keep_errno.h"
#include "heap/attach.h"
#include "heap/refill.h"
#include "os/os.h"
#include "os/thread.h"

namespace hummock::modes::recording {

hummock_record_t* part;

namespace {

static_assert(sizeof(hummock_record_head_t) == 4096 && sizeof(hummock_record_t) % 4096 == 0,
              "parts begin at pages");

constexpr char kVariable[] = "HUMMOCK_RUN_RECORD=";
constexpr uint64_t kMask = HUMMOCK_RECORD_EVENTS - 1;
constexpr unsigned kPatienceMs = 1000;

using Ring = hummock_record_ring_t;

template <class Number>
void count(Number& counter) {
  __atomic_fetch_add(&counter, Number{1}, __ATOMIC_RELAXED);
}

// Null: all are taken.
Ring* claim_ring() {
  for (uint32_t i = 0; i < HUMMOCK_RECORD_RINGS; ++i) {
    Ring* ring = &part->ring[i];
    uint32_t unused = HUMMOCK_RECORD_UNUSED;
    if (relaxed(ring->state) != unused) continue;
    // acquire: the tool has read all that the thread before wrote.
    if (!__atomic_compare_exchange_n(&ring->state, &unused, HUMMOCK_RECORD_USED, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED))
      continue;
    set_relaxed(ring->thread, uint32_t{os::thread_id()});
    uint32_t rings = relaxed(part->head.rings);
    while (rings <= i && !__atomic_compare_exchange_n(&part->head.rings, &rings, i + 1, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return ring;
  }
  return nullptr;
}

// The thread's heap, with frees on the slow path. Null: it has none, or the call is the allocator's own.
Heap* begin() {
  if (heap::thread_heap == &heap::ended_heap && !os::exit_repeats()) return nullptr;
  Heap* heap = heap::attach();
  if (heap == nullptr || heap->record.busy) return nullptr;
  if (heap->thread != 0) heap::leave_fast_path(heap);
  return heap;
}

// Where nobody reads for so long, nobody is there: from then on what finds no room is dropped at once.
bool wait_for_room(const Ring* ring, uint64_t tail) {
  const base::KeepErrno keep;
  bool moved = false;
  for (unsigned waited = 0; waited < kPatienceMs && !moved && relaxed(part->head.closed) == 0; ++waited) {
    os::sleep_ms(1);
    moved = relaxed(ring->tail) != tail;
  }
  return moved;
}

bool has_room(heap::Recorded* record) {
  // acquire: what stood there has been read.
  const uint64_t tail = __atomic_load_n(&record->ring->tail, __ATOMIC_ACQUIRE);
  if (__builtin_expect(record->ring->head - tail < HUMMOCK_RECORD_EVENTS, true)) return true;
  if (record->gave_up && record->tail == tail) return false;
  record->tail = tail;
  record->gave_up = !wait_for_room(record->ring, tail);
  return !record->gave_up;
}

void write_event(heap::Recorded* record, unsigned call, const void* block, size_t size, size_t align) {
  if (__builtin_expect(record->ring == nullptr, false)) {
    record->ring = claim_ring();
    record->gave_up = false;
    if (record->ring == nullptr) return count(part->head.dropped);
  }
  Ring* ring = record->ring;
  if (!has_room(record)) return set_relaxed(ring->dropped, ring->dropped + 1);
  hummock_record_event_t& event = ring->event[ring->head & kMask];
  // relaxed: a block that goes from thread to thread takes the order of their numbers with it.
  event.order = __atomic_fetch_add(&part->head.order, uint64_t{1}, __ATOMIC_RELAXED);
  event.address = reinterpret_cast<uintptr_t>(block);
  event.size = size;
  const uint64_t log = align > slab::kStep ? static_cast<uint64_t>(__builtin_ctzll(align)) : 0;
  event.when = (os::now_ns() - part->head.started) << 16 | log << 8 | call;
  // release: the event is there before it is counted.
  __atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
}

// A handler of a signal that comes amid this is not recorded.
void write(Heap* heap, unsigned call, const void* block, size_t size, size_t align) {
  heap::Recorded* record = &heap->record;
  record->busy = true;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  write_event(record, call, block, size, align);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  record->busy = false;
}

unsigned take_note(Heap* heap, unsigned otherwise) {
  const unsigned noted = heap->record.noted;
  heap->record.noted = 0;
  return noted != 0 ? noted : otherwise;
}

}  // namespace

void start() {
  if (os::is_privileged()) return;
  auto* claimed = static_cast<hummock_record_t*>(
      os::claim_shared(kVariable, sizeof(hummock_record_t), offsetof(hummock_record_t, head.pid)));
  if (claimed == nullptr) return;
  hummock_record_head_t* head = &claimed->head;
  head->version = HUMMOCK_RECORD_VERSION;
  head->size = sizeof *claimed;
  head->started = os::now_ns();
  os::program_name(head->program, sizeof head->program);
  // Last: who reads it sees the rest.
  __atomic_store_n(&head->magic, HUMMOCK_RECORD_MAGIC, __ATOMIC_RELEASE);
  part = claimed;
}

void in_child() {
  if (part == nullptr) return;
  count(part->head.forks);
  part = nullptr;
  for (const Heap* heap = heap::all_heaps(); heap != nullptr; heap = heap->next_record)
    const_cast<Heap*>(heap)->record = {};
}

void end_thread(Heap* heap) {
  Ring* ring = heap->record.ring;
  heap->record = {};
  // release: all events are there.
  if (ring != nullptr) __atomic_store_n(&ring->state, HUMMOCK_RECORD_ENDED, __ATOMIC_RELEASE);
}

void allocated(void* block, size_t align, size_t size, bool zero) {
  Heap* heap = begin();
  if (heap == nullptr) return;
  const unsigned plain = zero ? HUMMOCK_RECORD_CALLOC : HUMMOCK_RECORD_MALLOC;
  const unsigned call = take_note(heap, align > slab::kStep ? unsigned{HUMMOCK_RECORD_ALIGNED} : plain);
  if (block != nullptr) write(heap, call, block, size, align);
}

void released(void* block) {
  Heap* heap = begin();
  if (heap == nullptr) return;
  const bool sized = heap->record.noted == HUMMOCK_RECORD_SIZED;
  const heap::Recorded record = heap->record;
  const unsigned call = take_note(heap, HUMMOCK_RECORD_FREE);
  write(heap, call, block, sized ? record.size : 0, sized ? record.align : 0);
}

void note(hummock_record_call call, size_t size, size_t align) {
  Heap* heap = begin();
  if (heap == nullptr) return;
  heap->record.noted = static_cast<uint8_t>(call);
  heap->record.size = size;
  heap->record.align = align;
}

Resize::Resize(void* block) {
  if (!is_on()) return;
  heap_ = begin();
  if (heap_ == nullptr) return;
  write(heap_, HUMMOCK_RECORD_RESIZE_BEGIN, block, 0, 0);
  heap_->record.busy = true;
}

void* Resize::ends(void* block, size_t size) {
  if (heap_ == nullptr) return block;
  heap_->record.busy = false;
  write(heap_, HUMMOCK_RECORD_RESIZE_END, block, size, 0);
  return block;
}

}  // namespace hummock::modes::recording
