#include "modes/served.h"

#include <errno.h>
#include <string.h>

#include "base/keep_errno.h"
#include "base/message.h"
#include "base/options.h"
#include "space/cache.h"

namespace hummock::modes::served {
namespace {

using base::Line;

// Without malloc: glibc's strerror may translate.
const char* describe(int error) {
#ifdef __GLIBC__
  return strerrordesc_np(error);
#else
  return strerror(error);
#endif
}

constexpr size_t kLeast = size_t{64} << 10;
constexpr size_t kMostExpanded = size_t{64} << 30;
constexpr uint32_t kCacheBlocks = 32;
constexpr uint32_t kCacheStep = 16;  // and so up to 1 KiB

hummock_space_options_t wanted() {
  const options::Values& values = options::values;
  hummock_space_options_t o = {};
  o.size = sizeof(o);
  o.name = "external";
  o.initial = values.space_initial;
  o.expand = values.space_expand;
  const uint32_t with = values.space_with;
  o.reserve = (with & options::kSpaceFirstAlloc) != 0;
  o.populate = HUMMOCK_SPACE_TRY;
  o.lock = (with & options::kSpaceLock) != 0 ? HUMMOCK_SPACE_REQUIRE : HUMMOCK_SPACE_OFF;
  o.huge_pages = (with & options::kSpaceHuge) != 0      ? HUMMOCK_SPACE_REQUIRE
                 : (with & options::kSpaceTryHuge) != 0 ? HUMMOCK_SPACE_TRY
                                                        : HUMMOCK_SPACE_OFF;
  o.zero = (with & options::kSpaceZero) != 0;
  o.threads = HUMMOCK_SPACE_INHERIT;
  o.cache_blocks = kCacheBlocks;
  o.cache_step = kCacheStep;
  return o;
}

// Address space is all that a high maximum costs; where that is limited, it is less.
bool make(hummock_space_options_t* o) {
  if (o->expand == 0) return space::make_external(*o);
  for (size_t most = kMostExpanded; most > o->initial; most /= 2) {
    o->maximum = most;
    if (space::make_external(*o)) return true;
  }
  o->maximum = o->initial;
  return space::make_external(*o);
}

// acquire: pairs with the release in start().
space::Space* external() {
  return static_cast<space::Space*>(__atomic_load_n(&serving, __ATOMIC_ACQUIRE));
}

}  // namespace

constinit void* serving = nullptr;

void start() {
  const base::KeepErrno keep;
  if (options::values.checked)
    base::quit(Line() << "checked:on does not go with space_initial: no space is checked");
  if (options::values.limit_hard != 0 || options::values.limit_soft != 0)
    base::quit(Line() << "limit_hard and limit_soft do not go with space_initial: its size is the limit");
  hummock_space_options_t o = wanted();
  if (o.initial < kLeast && o.expand == 0)
    base::quit(
        Line().text("no space of ").bytes(o.initial).text(" can serve malloc: it takes ").bytes(kLeast));
  if (!make(&o)) {
    Line line;
    line.text("no space of ").bytes(o.initial).text(" can be had for malloc: ").text(describe(errno));
    space::add_wants(&line, o.lock, o.huge_pages);
    base::quit(line);
  }
  __atomic_store_n(&serving, space::external(), __ATOMIC_RELEASE);
}

void* allocate(size_t align, size_t size, bool zero) {
  space::Space* space = external();
  if (__builtin_expect(space == nullptr, false)) {  // being made by this very call
    errno = ENOMEM;
    return nullptr;
  }
  if (__builtin_expect(align <= space::kGranule && !zero && !space->zero, true)) {
    return space->plain_malloc(space, size);
  }
  return space::allocate(space, size, align < space::kGranule ? space::kGranule : align, zero || space->zero);
}

bool owns(const void* p) {
  const space::Space* space = external();
  return space != nullptr && space::contains(space, p);
}

void* allocate_plain(size_t size) {
  space::Space* space = external();
  return space->malloc(space, size);
}

bool release(void* p) {
  space::Space* space = external();
  if (__builtin_expect(!space::contains(space, p), false)) return false;
  space->free(space, p);
  return true;
}

void* reallocate(void* p, size_t size, bool zero) {
  space::Space* space = external();
  const size_t room = space::usable_size(space, p);
  void* moved = space::reallocate(space, p, size);
  if (moved != nullptr && zero) space::zero_room(space, moved, size < room ? size : room);
  return moved;
}

size_t usable_size(const void* p) {
  return space::usable_size(external(), p);
}

void release_sized(const char* call, void* p, size_t align, size_t size) {
  const size_t room = usable_size(p);
  if (size > room || (align != 0 && reinterpret_cast<uintptr_t>(p) % align != 0)) {
    base::die(Line() << call << "(" << static_cast<const void*>(p) << "): the block has room for " << room
                     << " bytes, it cannot have been allocated with size " << size << " and alignment "
                     << align);
  }
  space::release(external(), p);
}

uint32_t list_spaces(hummock_page_space_t* rows, uint32_t room, uint64_t* all) {
  return space::list(rows, room, all);
}

void add_figures(hummock_stats_t* out) {
  space::Space* space = external();
  if (space == nullptr) return;
  hummock_space_stats_t its = {};
  const uint64_t records = space::stats(space, &its);
  out->live += its.used - (its.live_blocks - its.cache_free_blocks - records) * space::kHeader;
  out->committed += its.bytes - its.overhead;
  out->peak += its.bytes - its.overhead;
  out->metadata += its.overhead;
  out->mapped += space->mapped;
}

}  // namespace hummock::modes::served
