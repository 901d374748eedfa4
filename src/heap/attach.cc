#include "heap/attach.h"

#include "base/annotate.h"
#include "base/options.h"
#include "base/system.h"
#include "heap/allocate.h"
#include "heap/allowance.h"
#include "heap/background.h"
#include "heap/heap_pool.h"
#include "heap/idle.h"
#include "heap/inbox.h"
#include "heap/limit_notice.h"
#include "heap/modes.h"
#include "heap/observer.h"
#include "heap/own_slabs.h"
#include "heap/refill.h"
#include "heap/tag.h"
#include "os/os.h"
#include "os/region_log.h"
#include "os/thread.h"
#include "pages/backing.h"
#include "pages/limits.h"
#include "shard/shard.h"

namespace hummock::heap {

base::OwnLine<size_t> fast_limit;
bool is_plain;
bool started;
uint32_t forks;
constinit Heap empty_heap = {};
constinit Heap ended_heap = {};
HUMMOCK_THREAD_POINTER(Heap, empty_heap) thread_heap = &empty_heap;

namespace {

os::Lock<os::Rank::start> start_lock;

UserHeap* common;  // of threads that can have none of their own; atomic: released when it is ready

void note_thread(Heap* heap) {
  heap->thread_id = os::thread_id();
  heap->forks = forks;
}

// The thread ends: nothing of it may be stranded.
void detach(void* record) {
  Heap* heap = static_cast<Heap*>(record);
  if (!os::ends_thread(heap == thread_heap)) return;
  thread_heap = &ended_heap;
  set_relaxed(heap->attached, false);
  heap->thread = 0;
  while (read_inbox(heap)) {
  }
  leave_thread();
  settle_tag(heap);
  heap->tag = heap->tag_row = 0;
  heap->in_hook = false;
  modes::recording::end_thread(heap);
  if (!park(heap)) give_up(heap);
  while (relaxed(parked_heap_waits)) serve_parked();
}

// Top down, as everywhere. The program's own handlers may run before this or after: those that run while we
// hold all allocate through the locks (os/lock.h).
void before_fork(os::ForkStep step) {
  start_lock.at_fork(step);
  modes::at_fork(step);
  user_heaps_at_fork(step);
  pool_at_fork(step);
  idle_at_fork(step);
  shard::at_fork(step);
  pages::at_fork(step);
  os::log_at_fork(step);
}

// With the locks held: what there is one of for each process, and figures of threads that are no more.
void begin_in_child() {
  Heap* own = thread_heap->attached ? thread_heap : nullptr;
  reset_own(own);
  if (observer.in_child != nullptr) observer.in_child();
  ++forks;
  modes::begin_in_child();
  forget_teller();
  if (own != nullptr) note_thread(own);
  forget_others(own, earned_by_parked());
}

// Bottom up, in parent and child. The only thread of a child holds every lock. Slabs of threads that are no
// more stay with their heaps' records: what they held is lost to the child, but frees into them are safe.
void after_fork(os::ForkStep step) {
  const bool begins = started && step == os::ForkStep::in_child;
  os::log_at_fork(step);
  pages::at_fork(step);
  shard::at_fork(step);
  idle_at_fork(step);
  pool_at_fork(step);
  if (begins) begin_in_child();
  user_heaps_at_fork(step);
  modes::at_fork(step);
  start_lock.at_fork(step);
  if (begins) start_background();
}

// Before there are threads: one may fork while another makes the first call.
__attribute__((constructor(101))) void handle_forks() {
  os::on_fork([](os::ForkStep step) { step == os::ForkStep::before ? before_fork(step) : after_fork(step); });
}

}  // namespace

void initialise_now() {
  {
    os::LockGuard guard(start_lock);
    if (started) return;
    base::note_standard_error();
    options::init(os::is_privileged());
    base::find_watcher();
    slab::make_secret(os::random_word());
    os::start_log();
    os::find_processor();
    pages::renew_limits();
    pages::take_reserve();
    os::on_thread_exit(detach);
    if (modes::start()) set_plain(true);
    __atomic_store_n(&started, true, __ATOMIC_RELEASE);
  }
  modes::sampling::renew_guards();
}

// Sequentially consistent, as are the changes of what it looks at: of two threads that come at once, the one
// that writes last has seen both changes.
void settle_fast_limit() {
  const auto wanted = [] {
    const bool plain = __atomic_load_n(&is_plain, __ATOMIC_SEQ_CST);
    return plain && modes::sampling::mean() == 0 ? kDirectSize : size_t{0};
  };
  size_t limit;
  do {
    limit = wanted();
    __atomic_store_n(&fast_limit.value, limit, __ATOMIC_SEQ_CST);
  } while (limit != wanted());
}

void set_plain(bool plain) {
  __atomic_store_n(&is_plain, plain, __ATOMIC_SEQ_CST);
  settle_fast_limit();
}

Heap* attach_now() {
  Heap* heap = thread_heap;
  initialise();  // which another thread may be about to end: what it wrote is seen from here
  if (is_replaced()) return nullptr;
  // Nobody will tell of the thread's end again: the caller gives the heap up.
  const bool briefly = heap == &ended_heap && !os::exit_repeats();
  heap = take_heap();
  if (heap == nullptr) return nullptr;
  enter_thread();
  set_relaxed(heap->attached, true);
  note_thread(heap);
  thread_heap = heap;  // first: setting the value may allocate
  if (briefly || os::set_exit_value(heap)) return heap;
  detach(heap);
  thread_heap = &empty_heap;
  return nullptr;
}

UserHeap* common_heap() {
  return is_replaced() ? __atomic_load_n(&common, __ATOMIC_ACQUIRE) : internal_heap(&common);
}

void end_thread() {
  Heap* heap = thread_heap;
  if (!heap->attached) return;
  os::set_exit_value(nullptr);
  detach(heap);
}

bool is_bin(const void* p) {
  if (p == &user_bin) return true;
  const uintptr_t address = reinterpret_cast<uintptr_t>(p);
  for (const Heap* heap = all_heaps(); heap != nullptr; heap = heap->next_record) {
    const uintptr_t offset = address - reinterpret_cast<uintptr_t>(heap->bins);
    if (offset < sizeof heap->bins) return offset % sizeof(Bin) == 0;
  }
  return false;
}

bool is_locked() {
  return pool_is_locked() || user_heaps_are_locked() || modes::is_locked() || pages::is_locked();
}

}  // namespace hummock::heap
