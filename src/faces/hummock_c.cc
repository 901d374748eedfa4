// hummock.h: the prefixed C interface.
#include "hummock/hummock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/options.h"
#include "base/version.h"
#include "faces/family.h"
#include "heap/attach.h"
#include "heap/diagnose.h"
#include "heap/limit_notice.h"
#include "heap/tag.h"
#include "heap/walk.h"
#include "modes/hooks.h"
#include "modes/sampling.h"
#include "observe/profile.h"
#include "observe/snapshot.h"
#include "observe/stats.h"
#include "os/os.h"
#include "pages/limits.h"

using namespace hummock;

namespace {

heap::UserHeap* of(hummock_heap_t* handle) {
  return reinterpret_cast<heap::UserHeap*>(handle);
}

// Blocks of a destroyed heap tell more than the heap itself, so calls that name one do not ask.
heap::UserHeap* used(const char* call, hummock_heap_t* handle) {
  heap::UserHeap* heap = of(handle);
  if (heap->self == heap && relaxed(heap->life) == heap::Life::used) return heap;
  if (heap::is_checked()) modes::checked::say_no_heap(call, heap);
  heap::no_such_heap(call, heap);
}

// Copies as much of `full` as the caller, whose header may be older, has room for.
template <class T>
void hand_over(T* full, T* out) {
  const size_t room = out->size < sizeof(T) ? out->size : sizeof(T);
  full->size = out->size;
  memcpy(out, full, room);
}

}  // namespace

// ---- The malloc family --------------------------------------------------------------------------

void* hummock_malloc(size_t size) noexcept {
  return heap::allocate(size);
}
void hummock_free(void* block) noexcept {
  heap::release(block);
}
void* hummock_calloc(size_t count, size_t size) noexcept {
  return faces::zeroed_array(count, size);
}
void* hummock_realloc(void* block, size_t size) noexcept {
  return faces::resize(block, size);
}

void* hummock_reallocarray(void* block, size_t count, size_t size) noexcept {
  return faces::resize_array(block, count, size);
}

void* hummock_aligned_alloc(size_t alignment, size_t size) noexcept {
  return faces::c23_aligned(alignment, size);
}

int hummock_posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  return faces::posix_aligned(out, alignment, size);
}

void* hummock_memalign(size_t alignment, size_t size) noexcept {
  return faces::rounded_aligned(alignment, size);
}

void* hummock_valloc(size_t size) noexcept {
  return faces::page_aligned(size);
}
void* hummock_pvalloc(size_t size) noexcept {
  return faces::whole_pages(size);
}
void hummock_free_sized(void* block, size_t size) noexcept {
  faces::release_sized(block, size);
}

void hummock_free_aligned_sized(void* block, size_t alignment, size_t size) noexcept {
  faces::release_aligned_sized(block, alignment, size);
}

void* hummock_malloc_zero(size_t size) noexcept {
  return heap::allocate_zeroed(size);
}

void* hummock_realloc_zero(void* block, size_t size) noexcept {
  if (block == nullptr) return heap::allocate_zeroed(size);
  if (size != 0) return heap::reallocate_zeroed(block, size);
  heap::release(block);
  return nullptr;
}

size_t hummock_usable_size(const void* block) noexcept {
  return faces::usable_size(block);
}
size_t hummock_good_size(size_t size) noexcept {
  // There a block has the size asked for, or a little more.
  if (heap::is_checked() || heap::is_served()) return heap::good_size(size) != 0 ? size : 0;
  return heap::good_size(size);
}
int hummock_trim(size_t keep) noexcept {
  return heap::trim(keep) ? 1 : 0;
}

// ---- First-class heaps --------------------------------------------------------------------------

hummock_heap_t* hummock_heap_create() noexcept {
  return reinterpret_cast<hummock_heap_t*>(heap::user_create());
}

void* hummock_heap_malloc(hummock_heap_t* heap, size_t size) noexcept {
  return heap == nullptr ? heap::allocate(size)
                         : heap::user_allocate(used("hummock_heap_malloc", heap), size);
}

void* hummock_heap_calloc(hummock_heap_t* heap, size_t count, size_t size) noexcept {
  if (heap == nullptr) return faces::zeroed_array(count, size);
  heap::UserHeap* own = used("hummock_heap_calloc", heap);
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return faces::fail(ENOMEM);
  return heap::user_allocate_zeroed(own, bytes);
}

void* hummock_heap_realloc(hummock_heap_t* heap, void* block, size_t size) noexcept {
  if (heap == nullptr) return faces::resize(block, size);
  if (block == nullptr) return heap::user_allocate(used("hummock_heap_realloc", heap), size);
  if (size != 0) return heap::user_reallocate(of(heap), block, size);
  heap::user_release(of(heap), block);
  return nullptr;
}

void* hummock_heap_memalign(hummock_heap_t* heap, size_t alignment, size_t size) noexcept {
  if (heap == nullptr) return faces::rounded_aligned(alignment, size);
  heap::UserHeap* own = used("hummock_heap_memalign", heap);
  const size_t power = faces::round_up_to_power(alignment);
  if (power == 0) return faces::fail(EINVAL);
  if (size > size_t{PTRDIFF_MAX} || power > size_t{PTRDIFF_MAX} - size) return faces::fail(ENOMEM);
  return heap::user_allocate_aligned(own, power, size);
}

void hummock_heap_free(hummock_heap_t* heap, void* block) noexcept {
  if (block == nullptr) return;
  if (heap == nullptr) return heap::release(block);
  heap::user_release(of(heap), block);
}

void hummock_heap_destroy(hummock_heap_t* heap) noexcept {
  if (heap != nullptr) heap::user_destroy(used("hummock_heap_destroy", heap));
}

int hummock_heap_stats(hummock_heap_t* heap, hummock_heap_stats_t* out) noexcept {
  if (heap == nullptr || out == nullptr || out->size < 2 * sizeof(size_t)) return EINVAL;
  hummock_heap_stats_t full = {};
  full.size = sizeof(full);
  heap::user_stats(used("hummock_heap_stats", heap), &full);
  hand_over(&full, out);
  return 0;
}

int hummock_heap_set_name(hummock_heap_t* heap, const char* name) noexcept {
  if (heap == nullptr) return EINVAL;
  heap::user_name(used("hummock_heap_set_name", heap), name);
  return 0;
}

// ---- Looking into the heap ----------------------------------------------------------------------

int hummock_heap_walk(hummock_heap_t* heap, int (*visit)(void* context, void* block, size_t size),
                      void* context) noexcept {
  if (visit == nullptr) return EINVAL;
  // Where memory must be committed, another thread may take it away under our eyes.
  const bool unsafe = os::kMustCommit && heap == nullptr;
  if (unsafe || heap::is_checked() || heap::is_served()) return ENOTSUP;
  heap::walk_blocks(heap == nullptr ? nullptr : used("hummock_heap_walk", heap), {visit, context});
  return 0;
}

int hummock_slab_utilisation(const void* block) noexcept {
  return heap::is_checked() || heap::is_served() ? -1 : heap::utilisation(block);
}

uint32_t hummock_tag(uint32_t tag) noexcept {
  return heap::change_tag(tag);
}

int hummock_tag_stats(uint32_t tag, hummock_tag_stats_t* out) noexcept {
  if (out == nullptr || out->size < 2 * sizeof(size_t)) return EINVAL;
  heap::TagTotal totals[heap::kTags];
  heap::sum_tags(totals);
  for (const heap::TagTotal& row : totals) {
    if (!row.used || row.tag != tag) continue;
    hummock_tag_stats_t full = {sizeof full, row.bytes, row.blocks};
    hand_over(&full, out);
    return 0;
  }
  return ENOENT;
}

int hummock_set_hooks(const hummock_hooks_t* hooks) noexcept {
  return modes::hooks::install(hooks);
}

// ---- Statistics and the library itself ----------------------------------------------------------

int hummock_stats(hummock_stats_t* out) noexcept {
  if (out == nullptr || out->size < 2 * sizeof(size_t)) return EINVAL;
  hummock_stats_t full = {};
  full.size = sizeof(full);
  observe::collect(&full);
  hand_over(&full, out);
  return 0;
}

size_t hummock_stats_json(char* out, size_t room) noexcept {
  return observe::stats_json(out, out != nullptr ? room : 0);
}

// Asks rather than compares addresses: those of functions differ between a program that is not
// position-independent and the libraries it uses.
int hummock_is_active() noexcept {
  void* block = malloc(1);
  const bool ours = block != nullptr && heap::owns(block);
  free(block);
  return ours ? 1 : 0;
}

const char* hummock_version() noexcept {
  return base::kVersion;
}

int hummock_option_get(const char* name, char* value, size_t room) noexcept {
  return options::get(name, value, room);
}

int hummock_option_set(const char* name, const char* value) noexcept {
  heap::initialise();  // which would go over what was set before
  const int error = options::set(name, value);
  pages::renew_limits();
  modes::sampling::renew_guards();
  return error;
}

int hummock_profile_start(size_t bytes) noexcept {
  return modes::sampling::set_mean(bytes != 0 ? bytes : options::sample_bytes());
}

int hummock_profile_stop() noexcept {
  return modes::sampling::set_mean(0);
}

int hummock_profile_write(const char* path) noexcept {
  return observe::write_profile(path);
}

int hummock_on_limit(hummock_limit_handler handler) noexcept {
  heap::set_limit_handler(handler);
  return 0;
}

int hummock_on_bad_pointer(void (*handler)(const char* message)) noexcept {
  if (handler != nullptr && heap::is_checked()) return EPERM;
  base::set_refusal_handler(handler);
  return 0;
}
