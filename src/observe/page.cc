#include "observe/page.h"

#include <errno.h>
#include <string.h>

#include "base/options.h"
#include "base/version.h"
#include "heap/idle.h"
#include "heap/observer.h"
#include "hummock/page.h"
#include "modes/sampling.h"
#include "observe/figures.h"
#include "os/os.h"
#include "os/region_log.h"
#include "pages/limits.h"

namespace hummock::observe {
namespace {

// With these, a call that gathers a slice stays within the bounds of one call.
constexpr unsigned kSlotsPerSlice = 192;

hummock_page_t*
    page;  // atomic, relaxed; written at start, and in a child's first answer by the `busy` thread

// How far an answer is. Each stage makes as many system calls as kCost says, so that an answer comes in
// slices.
enum class Stage : uint8_t {
  begin,
  request,   // several times
  answer,    // to the request
  figures,   // several times
  publish,   // them
  resident,  // for the line in the region log, as the next
  line,
};
constexpr unsigned kCost[] = {1, 4, 1, 0, 1, 3, 4};

// What somebody outside wants done, beside figures.
struct Request {
  uint32_t number, kind, option;
  int64_t value;
  bool was_set, has_limits;  // steps that are done
  int result;
};

// The thread that has it answers; others go on. acquire and release pair with each other, for everything
// below.
bool busy;
bool inherited;            // the page is the parent's: nothing is written there
os::SharedInSteps making;  // a page of our own, or memory for a profile
Stage stage;
uint32_t answers_to;  // the value of `asked` that it answers
Request request;
uint64_t snapshots;  // since the page was made
size_t resident;
Gathering gathered;
hummock_figures_t figures;  // bss, untouched before the first request

static_assert(sizeof(hummock_page_t) <= 24 << 10, "the page is six of the system's");

hummock_page_t* begin_page(void* memory, unsigned process) {
  auto* fresh = static_cast<hummock_page_t*>(memory);
  hummock_page_head_t* head = &fresh->head;
  head->version = HUMMOCK_PAGE_VERSION;
  head->size = sizeof *fresh;
  head->pid = process;
  head->started = os::now_ns();
  memcpy(head->library, base::kVersion, sizeof base::kVersion);
  __atomic_store_n(&head->magic, HUMMOCK_PAGE_MAGIC, __ATOMIC_RELEASE);  // last: then a reader sees the rest
  return fresh;
}

void watch(hummock_page_t* fresh, const uint32_t* word) {
  __atomic_store_n(&page, fresh, __ATOMIC_RELAXED);
  set_relaxed(heap::observer.seen, relaxed(*word));
  set_relaxed(heap::observer.asked, word);
}

// ---- Requests. Anybody may have written what is read here, at any time, so each word is read once.

// A step of it. True: it was the last.
bool set_option() {
  if (!request.was_set) {
    request.result = options::set_number(request.option, request.value);
    request.was_set = true;
    return request.result != 0;
  }
  if (!request.has_limits) {
    request.has_limits = pages::renew_limits_some();
    return false;
  }
  modes::sampling::renew_guards();
  return true;
}

// Likewise.
bool start_profile() {
  const uint64_t mean = request.value < 0 ? options::sample_bytes() : static_cast<uint64_t>(request.value);
  return modes::sampling::set_mean_some(mean, &making, &request.result);
}

// Likewise.
bool carry_out() {
  switch (request.kind) {
    case HUMMOCK_REQUEST_TRIM:
      request.result = heap::ask_trim() ? 0 : EPERM;
      return true;
    case HUMMOCK_REQUEST_SET:
      return set_option();
    case HUMMOCK_REQUEST_PROFILE:
      return start_profile();
    default:
      request.result = EINVAL;
      return true;
  }
}

// False: there is none.
bool take_request(const hummock_page_head_t& head) {
  // acquire: pairs with the write of a reader, which comes after that of the rest.
  const uint32_t number = __atomic_load_n(&head.request, __ATOMIC_ACQUIRE);
  if (number == head.answered) return false;
  request = {};
  request.number = number;
  request.kind = __atomic_load_n(&head.kind, __ATOMIC_RELAXED);
  request.option = __atomic_load_n(&head.option, __ATOMIC_RELAXED);
  request.value = __atomic_load_n(&head.value, __ATOMIC_RELAXED);
  return true;
}

void answer(hummock_page_head_t* head) {
  __atomic_store_n(&head->result, request.result, __ATOMIC_RELAXED);
  // release: who sees it sees the result.
  __atomic_store_n(&head->answered, request.number, __ATOMIC_RELEASE);
}

Stage begin_figures() {
  gathered.begin(&figures);
  return Stage::figures;
}

// A sequence lock for readers that copy by system calls.
void publish(hummock_page_t* to) {
  figures.taken = os::now_ns();
  figures.snapshots = ++snapshots;
  hummock_page_head_t* head = &to->head;
  const uint32_t even = head->sequence & ~1u;
  __atomic_store_n(&head->sequence, even + 1, __ATOMIC_RELAXED);
#if !defined(__SANITIZE_THREAD__)           // it knows no fences; all readers are other processes
  __atomic_thread_fence(__ATOMIC_RELEASE);  // odd before the first of the figures changes
#endif
  memcpy(&to->figures, &figures, sizeof figures);
  __atomic_store_n(&head->sequence, even + 2, __ATOMIC_RELEASE);  // even after the last
  __atomic_store_n(&head->served, answers_to, __ATOMIC_RELEASE);
}

Stage end_answer() {
  set_relaxed(heap::observer.seen, answers_to);
  return Stage::begin;
}

Stage next_stage(hummock_page_t* own) {
  switch (stage) {
    case Stage::begin:
      answers_to = __atomic_load_n(&own->head.asked, __ATOMIC_ACQUIRE);
      return take_request(own->head) ? Stage::request : begin_figures();
    case Stage::request:
      return carry_out() ? Stage::answer : Stage::request;
    case Stage::answer:
      answer(&own->head);
      making = {};
      return begin_figures();
    case Stage::figures:
      return gathered.step(kSlotsPerSlice) ? Stage::publish : Stage::figures;
    case Stage::publish:
      publish(own);
      return os::memory_line_due() ? Stage::resident : end_answer();
    case Stage::resident:
      resident = os::resident_bytes() + figures.huge_pinned;
      return Stage::line;
    default:
      os::log_memory(figures.live, resident);
      return end_answer();
  }
}

// The process that writes there. Where stages do not ask, nothing is written that others see.
bool is_own(const hummock_page_t* own) {
  const bool asks = stage == Stage::begin || stage == Stage::answer || stage == Stage::publish;
  return !asks || own->head.pid == os::process_id();
}

// The next slow call does, not some later one.
void go_on_soon() {
  heap::note_freed();
  pages::set_behind(true);
}

// One slice of the figures at most, and one step of a request.
void serve_own(hummock_page_t* own, unsigned* calls) {
  for (bool more = true; more && kCost[static_cast<unsigned>(stage)] <= *calls;) {
    const Stage before = stage;
    *calls -= kCost[static_cast<unsigned>(before)];
    if (!is_own(own)) {  // a child without handlers of fork, as of vfork
      if (before == Stage::begin) set_relaxed(heap::observer.seen, relaxed(own->head.asked));
      return;
    }
    stage = next_stage(own);
    more = stage != before && stage != Stage::begin;
  }
  if (stage == Stage::figures) heap::note_freed();
  if (stage != Stage::figures && stage != Stage::begin) go_on_soon();
}

// Somebody asks a child of this page's process: if it is us, we get one of our own. The inherited one stays
// mapped, as others may look at it just now, and its descriptor open, as it may be the program's by now.
void serve_inherited(hummock_page_t* parents, unsigned* calls) {
  if (*calls < pages::kMostCalls) return go_on_soon();
  *calls = 0;
  const uint32_t children = __atomic_load_n(&parents->head.children, __ATOMIC_ACQUIRE);
  const bool begun = making.step != 0;
  const bool meant = begun || __atomic_load_n(&parents->head.child, __ATOMIC_RELAXED) == os::process_id();
  if (!meant) return set_relaxed(heap::observer.seen, children);
  go_on_soon();
  if (!os::map_shared_some(&making, HUMMOCK_PAGE_NAME, sizeof(hummock_page_t))) return;
  const os::SharedInSteps made = making;
  making = {};
  if (made.memory == nullptr) return set_relaxed(heap::observer.seen, children);
  inherited = false;
  snapshots = 0;
  hummock_page_t* own = begin_page(made.memory, made.process);
  watch(own, &own->head.asked);
}

void serve(unsigned* calls) {
  if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE)) return;
  hummock_page_t* mine = __atomic_load_n(&page, __ATOMIC_RELAXED);
  inherited ? serve_inherited(mine, calls) : serve_own(mine, calls);
  __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
}

void in_child() {
  busy = false;  // who answered is not here
  os::forget_shared(&making);
  stage = Stage::begin;
  inherited = true;
  watch(page, &page->head.children);
}

}  // namespace

void start_page() {
  if (!options::values.observe || os::is_privileged() || page != nullptr) return;
  void* memory = os::map_shared(HUMMOCK_PAGE_NAME, sizeof(hummock_page_t));
  if (memory == nullptr) return;
  hummock_page_t* fresh = begin_page(memory, os::process_id());
  heap::observer.serve = serve;
  heap::observer.in_child = in_child;
  watch(fresh, &fresh->head.asked);
}

}  // namespace hummock::observe
