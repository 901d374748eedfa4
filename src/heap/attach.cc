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
void before_fork() {
  start_lock.lock_for_fork();
  modes::lock_for_fork();
  lock_user_heaps();
  lock_pool();
  lock_idle();
  shard::lock_all();
  pages::lock_all();
  os::lock_log();
}

void after_fork_in_parent() {
  os::unlock_log();
  pages::unlock_all();
  shard::unlock_all();
  unlock_idle();
  unlock_pool();
  unlock_user_heaps();
  modes::unlock_after_fork();
  start_lock.unlock_after_fork();
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

// The only thread of the child holds every lock. Slabs of threads that are no more stay with their
// heaps' records: what they held is lost to the child, but frees into them are safe.
void after_fork_in_child() {
  os::log_after_fork();
  pages::reset_all();
  shard::reset_all();
  reset_idle();
  reset_pool();
  if (started) begin_in_child();
  reset_user_heaps();
  modes::unlock_in_child();
  start_lock.unlock_in_child();
  if (started) start_background();
}

constexpr os::ForkHandlers kForkHandlers = {before_fork, after_fork_in_parent, after_fork_in_child};

// Before there are threads: one may fork while another makes the first call.
__attribute__((constructor(101))) void handle_forks() {
  os::on_fork(&kForkHandlers);
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
  // acquire: pairs with the exchange, so that the heap is seen as it was made.
  UserHeap* heap = __atomic_load_n(&common, __ATOMIC_ACQUIRE);
  if (heap != nullptr || is_replaced()) return heap;
  UserHeap* fresh = new_user_heap(true);
  if (fresh == nullptr) return nullptr;
  if (__atomic_compare_exchange_n(&common, &heap, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return fresh;
  delete_user_heap(fresh);  // another thread was quicker
  return heap;
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
