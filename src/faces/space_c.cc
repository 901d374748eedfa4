// hummock/space.h: the C interface of spaces.
#include "hummock/space.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "space/cache.h"
#include "space/slots.h"
#include "space/space.h"

using namespace hummock;
using space::of;

namespace {

hummock_space_t* handle(space::Space* space) {
  return reinterpret_cast<hummock_space_t*>(space);
}

void* refuse(int error) {
  errno = error;
  return nullptr;
}

}  // namespace

hummock_space_t* hummock_space_create(const hummock_space_options_t* options, uint32_t* achieved) noexcept {
  // A caller with an older header knows fewer fields; the rest are zero.
  if (options == nullptr || options->size < offsetof(hummock_space_options_t, expand) ||
      options->size > sizeof(hummock_space_options_t)) {
    return static_cast<hummock_space_t*>(refuse(EINVAL));
  }
  hummock_space_options_t full = {};
  memcpy(&full, options, options->size);
  return handle(space::create(full, achieved));
}

void hummock_space_destroy(hummock_space_t* space) noexcept {
  if (space != nullptr) space::destroy(of(space));
}

void* hummock_space_malloc(hummock_space_t* space, size_t size) noexcept {
  return of(space)->malloc(of(space), size);
}

void* hummock_space_malloc_zero(hummock_space_t* space, size_t size, int zero) noexcept {
  return zero != 0 ? space::allocate_zeroed(of(space), size) : of(space)->plain_malloc(of(space), size);
}

void* hummock_space_calloc(hummock_space_t* space, size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return refuse(ENOMEM);
  return space::allocate_zeroed(of(space), bytes);
}

void* hummock_space_memalign(hummock_space_t* space, size_t alignment, size_t size) noexcept {
  constexpr size_t kMostShared = 4096;  // what every process's mapping is aligned to
  if (!base::is_power_of_two(alignment)) return refuse(EINVAL);
  if (of(space)->descriptor >= 0 && alignment > kMostShared) return refuse(EINVAL);
  return space::allocate(of(space), size, alignment, of(space)->zero);
}

void* hummock_space_realloc(hummock_space_t* space, void* block, size_t size) noexcept {
  if (block == nullptr) return hummock_space_malloc(space, size);
  if (size != 0) return space::reallocate(of(space), block, size);
  space::release(of(space), block);
  return nullptr;
}

void hummock_space_free(hummock_space_t* space, void* block) noexcept {
  of(space)->free(of(space), block);
}

size_t hummock_space_usable_size(hummock_space_t* space, const void* block) noexcept {
  return block == nullptr ? 0 : space::usable_size(of(space), block);
}

int hummock_space_contains(const hummock_space_t* space, const void* address) noexcept {
  return space::contains(of(space), address) ? 1 : 0;
}

size_t hummock_space_required_size(size_t max_live, size_t largest, size_t smallest) noexcept {
  const uint64_t bytes = space::required_size(max_live, largest, smallest);
  return bytes == 0 ? 0 : bytes + sizeof(space::Control);
}

int hummock_space_expand(hummock_space_t* space, size_t bytes) noexcept {
  return space::expand(of(space), bytes);
}
size_t hummock_space_shrink(hummock_space_t* space, size_t bytes) noexcept {
  return space::shrink(of(space), bytes);
}
size_t hummock_space_trim(hummock_space_t* space) noexcept {
  return space::trim(of(space));
}
int hummock_space_own(hummock_space_t* space) noexcept {
  return space::own(of(space));
}
void hummock_space_flush(hummock_space_t* space) noexcept {
  space::flush(of(space));
}

int hummock_space_stats(hummock_space_t* space, hummock_space_stats_t* out) noexcept {
  if (space == nullptr || out == nullptr || out->size < 2 * sizeof(size_t)) return EINVAL;
  hummock_space_stats_t full = {};
  full.size = out->size;
  space::stats(of(space), &full);
  memcpy(out, &full, out->size < sizeof full ? out->size : sizeof full);
  return 0;
}

int hummock_space_walk(hummock_space_t* space,
                       int (*visit)(void* context, void* address, size_t size, int live),
                       void* context) noexcept {
  if (space == nullptr || visit == nullptr) return EINVAL;
  return space::visit(of(space), visit, context);
}

hummock_space_t* hummock_space_open(const char* name) noexcept {
  return name == nullptr ? static_cast<hummock_space_t*>(refuse(EINVAL)) : handle(space::open(name));
}
hummock_space_t* hummock_space_attach(int descriptor) noexcept {
  return handle(space::attach(descriptor));
}
int hummock_space_descriptor(const hummock_space_t* space) noexcept {
  return of(space)->descriptor;
}

size_t hummock_space_offset(const hummock_space_t* space, const void* block) noexcept {
  if (block == nullptr) return 0;
  return static_cast<size_t>(static_cast<const char*>(block) -
                             reinterpret_cast<const char*>(of(space)->control));
}

void* hummock_space_pointer(const hummock_space_t* space, size_t offset) noexcept {
  return offset == 0 ? nullptr : reinterpret_cast<char*>(of(space)->control) + offset;
}

// Release and acquire: what the offset leads to was written before it was set.
void hummock_space_set_root(hummock_space_t* space, size_t offset) noexcept {
  __atomic_store_n(&of(space)->control->root, offset, __ATOMIC_RELEASE);
}
size_t hummock_space_root(const hummock_space_t* space) noexcept {
  return __atomic_load_n(&of(space)->control->root, __ATOMIC_ACQUIRE);
}

hummock_space_t* hummock_space_of_process(int which) noexcept {
  if (which == HUMMOCK_SPACE_INTERNAL) return handle(space::internal());
  return which == HUMMOCK_SPACE_EXTERNAL ? handle(space::external()) : nullptr;
}
