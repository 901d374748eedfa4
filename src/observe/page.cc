#include "observe/page.h"

#include <errno.h>
#include <string.h>

#include "base/options.h"
#include "base/version.h"
#include "heap/idle.h"
#include "heap/observer.h"
#include "heap/sampling.h"
#include "hummock/page.h"
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

// The thread that sets it answers; others go on. Its acquire and release pair with each other, for everything
// below.
bool busy;
bool inherited;       // the page is the parent's, so we write nothing there
bool gathering;       // a snapshot is under way
uint32_t answers_to;  // the value of `asked` that it answers
uint64_t snapshots;   // since the page was made
Gathering gathered;
hummock_figures_t figures;  // bss, untouched before the first request

hummock_page_t* make_page() {
  static_assert(sizeof(hummock_page_t) <= 24 << 10, "the page is six of the system's");
  auto* fresh = static_cast<hummock_page_t*>(os::map_shared(HUMMOCK_PAGE_NAME, sizeof(hummock_page_t)));
  if (fresh == nullptr) return nullptr;
  hummock_page_head_t* head = &fresh->head;
  head->version = HUMMOCK_PAGE_VERSION;
  head->size = sizeof *fresh;
  head->pid = os::process_id();
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

int carry_out(uint32_t kind, uint32_t option, int64_t value) {
  switch (kind) {
    case HUMMOCK_REQUEST_TRIM:
      return heap::ask_trim() ? 0 : EPERM;
    case HUMMOCK_REQUEST_SET: {
      const int error = options::set_number(option, value);
      pages::renew_limits();
      heap::sampling::renew_guards();
      return error;
    }
    case HUMMOCK_REQUEST_PROFILE:
      return heap::sampling::set_mean(value < 0 ? options::sample_bytes() : static_cast<uint64_t>(value));
    default:
      return EINVAL;
  }
}

void answer(hummock_page_head_t* head) {
  // acquire: pairs with the reader's write, which comes after it wrote the rest.
  const uint32_t request = __atomic_load_n(&head->request, __ATOMIC_ACQUIRE);
  if (request == head->answered) return;
  const int result = carry_out(__atomic_load_n(&head->kind, __ATOMIC_RELAXED),
                               __atomic_load_n(&head->option, __ATOMIC_RELAXED),
                               __atomic_load_n(&head->value, __ATOMIC_RELAXED));
  __atomic_store_n(&head->result, result, __ATOMIC_RELAXED);
  // release: a reader that sees it sees the result.
  __atomic_store_n(&head->answered, request, __ATOMIC_RELEASE);
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
  set_relaxed(heap::observer.seen, answers_to);
  if (os::memory_line_due()) os::log_memory(figures.live, os::resident_bytes() + figures.huge_pinned);
}

void serve_own(hummock_page_t* own) {
  if (!gathering) {
    answers_to = __atomic_load_n(&own->head.asked, __ATOMIC_ACQUIRE);
    answer(&own->head);
    gathered.begin(&figures);
    gathering = true;
  }
  heap::note_freed();
  if (!gathered.step(kSlotsPerSlice)) return;
  gathering = false;
  publish(own);
}

// Somebody asks a child of this page's process. If it is us, we make our own page. The inherited one stays
// mapped, because other threads may be looking at it, and its descriptor stays open, because it may be the
// program's by now.
void serve_inherited(hummock_page_t* parents) {
  const uint32_t children = __atomic_load_n(&parents->head.children, __ATOMIC_ACQUIRE);
  const bool meant = __atomic_load_n(&parents->head.child, __ATOMIC_RELAXED) == os::process_id();
  hummock_page_t* own = meant ? make_page() : nullptr;
  if (own == nullptr) return set_relaxed(heap::observer.seen, children);
  inherited = false;
  snapshots = 0;
  watch(own, &own->head.asked);
}

void serve() {
  if (__atomic_exchange_n(&busy, true, __ATOMIC_ACQUIRE)) return;
  hummock_page_t* mine = __atomic_load_n(&page, __ATOMIC_RELAXED);
  if (inherited) {
    serve_inherited(mine);
  } else if (mine->head.pid == os::process_id()) {
    serve_own(mine);
  } else {  // a child without fork handlers, as after vfork
    set_relaxed(heap::observer.seen, relaxed(mine->head.asked));
  }
  __atomic_store_n(&busy, false, __ATOMIC_RELEASE);
}

void in_child() {
  busy = false;  // the thread that answered is not in the child
  gathering = false;
  inherited = true;
  watch(page, &page->head.children);
}

}  // namespace

void start_page() {
  if (!options::values.observe || os::is_privileged() || page != nullptr) return;
  hummock_page_t* fresh = make_page();
  if (fresh == nullptr) return;
  heap::observer.serve = serve;
  heap::observer.in_child = in_child;
  watch(fresh, &fresh->head.asked);
}

}  // namespace hummock::observe
