// Making a space and changing its extent: the only calls of a space that ask the system for anything.
#include <string.h>

#include "base/bits.h"
#include "base/keep_errno.h"
#include "os/os.h"
#include "space/arena.h"
#include "space/cache.h"

namespace hummock::space {
namespace {

using base::align_down;
using base::align_up;

constexpr uint32_t kOff = HUMMOCK_SPACE_OFF;
constexpr uint32_t kRequire = HUMMOCK_SPACE_REQUIRE;
constexpr unsigned kMostCacheBlocks = 256;
constexpr unsigned kMostRestBlocks = 1024;
constexpr size_t kDefaultStep = 32;
constexpr size_t kDefaultLargest = 1024;
constexpr size_t kDefaultResting = 4096;

bool fail(int error) {
  errno = error;
  return false;
}

char* at_byte(Space* space, uint64_t offset) {
  return reinterpret_cast<char*>(space->control) + offset;
}

// ---- Options ------------------------------------------------------------------------------------

bool is_wish(uint32_t value) {
  return value <= kRequire;
}

bool is_cache_right(const hummock_space_options_t& o) {
  if (o.cache_blocks == 0) return o.cache_step == 0 && o.cache_largest == 0;
  if (o.threads == HUMMOCK_SPACE_OWNER) {
    return o.cache_blocks <= kMostRestBlocks && o.cache_step == 0 && o.cache_largest <= kMostResting &&
           o.policy == HUMMOCK_SPACE_DENSE && o.shared == 0;
  }
  const size_t step = o.cache_step == 0 ? kDefaultStep : o.cache_step;
  const size_t largest = o.cache_largest == 0 ? kDefaultLargest : o.cache_largest;
  return o.cache_blocks <= kMostCacheBlocks && step >= kGranule && step <= kMostSpace &&
         base::is_power_of_two(step) && largest <= kCacheBins * step && o.policy == HUMMOCK_SPACE_DENSE &&
         o.shared == 0;
}

bool is_memory_right(const hummock_space_options_t& o) {
  if (o.memory == nullptr) return true;
  return reinterpret_cast<uintptr_t>(o.memory) % 64 == 0 && o.expand == 0 && o.shared == 0 &&
         (o.maximum == 0 || o.maximum == o.initial) && o.reserve == HUMMOCK_SPACE_AT_START &&
         o.huge_pages != kRequire && o.no_fork != kRequire;
}

bool is_right(const hummock_space_options_t& o) {
  return o.initial != 0 && o.initial <= kMostSpace && o.maximum <= kMostSpace && o.expand <= kMostSpace &&
         (o.maximum == 0 || o.maximum >= o.initial) && o.reserve <= HUMMOCK_SPACE_AT_FIRST &&
         is_wish(o.populate) && is_wish(o.lock) && is_wish(o.huge_pages) && is_wish(o.no_fork) &&
         o.zero <= 1 && o.threads <= HUMMOCK_SPACE_INHERIT && o.policy <= HUMMOCK_SPACE_PROVEN &&
         o.shared <= 1 && is_cache_right(o) && is_memory_right(o) &&
         (o.shared == 0 || (o.threads == HUMMOCK_SPACE_INHERIT && o.no_fork == kOff && o.huge_pages == kOff));
}

// ---- Memory -------------------------------------------------------------------------------------

// Does the step, if it is wished for, and notes what came of it: `bit` is kept only while every part of
// the space has the property. False when it is required and not to be had.
template <class Step>
bool obtain(uint32_t wish, uint32_t bit, uint32_t* has, Step step) {
  if (wish == kOff) return true;
  if (step()) return true;
  *has &= ~bit;
  return wish != kRequire;
}

bool is_huge(Space* space, uint64_t bytes) {
  return arena_huge_bytes(space->control, bytes) >= align_down(bytes, os::kHugePage) &&
         bytes % os::kHugePage == 0;
}

uint32_t populate_wish(const Space* space) {
  // What the system set aside and then refuses (the limit of a group) would be a SIGBUS when touched.
  if (space->huge_mapping) return kRequire;
  const uint32_t wish = space->lock > space->populate ? space->lock : space->populate;
  return wish > space->huge_pages ? wish : space->huge_pages;
}

// The bytes from…to of the space get memory with the properties wished for.
bool secure(Space* space, uint64_t from, uint64_t to, uint32_t* has) {
  char* start = at_byte(space, from);
  size_t length = to - from;
  if (space->callers_memory) {
    start = reinterpret_cast<char*>(align_down(reinterpret_cast<uintptr_t>(start), os::page_size()));
    length = align_up(reinterpret_cast<uintptr_t>(at_byte(space, to)), os::page_size()) -
             reinterpret_cast<uintptr_t>(start);
  } else if (space->descriptor < 0 && !space->huge_mapping) {
    if (!arena_commit(start, length)) return false;
    if (space->huge_pages != kOff) arena_wish_huge(start, length);
  }
  const uint32_t populate = populate_wish(space);
  return obtain(space->no_fork, HUMMOCK_SPACE_NO_FORK, has,
                [&] { return !space->callers_memory && arena_keep_from_fork(start, length); }) &&
         obtain(populate, HUMMOCK_SPACE_POPULATED, has, [&] { return arena_populate(start, length); }) &&
         obtain(space->lock, HUMMOCK_SPACE_LOCKED, has, [&] { return arena_lock(start, length); }) &&
         obtain(space->huge_pages, HUMMOCK_SPACE_HUGE_PAGES, has, [&] {
           if (is_huge(space, to)) return true;
           errno = ENOMEM;
           return false;
         });
}

uint32_t wished(const Space* space) {
  uint32_t bits = 0;
  if (space->no_fork != kOff) bits |= HUMMOCK_SPACE_NO_FORK;
  if (space->populate != kOff || space->lock != kOff) bits |= HUMMOCK_SPACE_POPULATED;
  if (space->lock != kOff) bits |= HUMMOCK_SPACE_LOCKED;
  if (space->huge_pages != kOff) bits |= HUMMOCK_SPACE_HUGE_PAGES | HUMMOCK_SPACE_POPULATED;
  return bits;
}

bool map_shared(Space* space, const hummock_space_options_t& o, uint64_t maximum) {
  space->descriptor = shared_create(o.name, maximum);
  if (space->descriptor < 0) return false;
  space->control = static_cast<Control*>(shared_map(space->descriptor, maximum));
  if (space->control != nullptr) return true;
  const int why = errno;
  shared_close(space->descriptor);
  if (o.name != nullptr) shared_unlink(o.name);
  return fail(why);
}

// Sets `control` to address space for all the space can ever be.
bool map(Space* space, const hummock_space_options_t& o, uint64_t maximum, bool pool) {
  space->mapped = maximum;
  space->descriptor = -1;
  if (o.memory != nullptr) {
    space->control = static_cast<Control*>(o.memory);
    space->callers_memory = true;
    return true;
  }
  if (o.shared != 0) return map_shared(space, o, maximum);
  if (o.huge_pages != kOff && pool) {
    space->control = static_cast<Control*>(arena_huge(maximum));
    space->huge_mapping = space->control != nullptr;
    if (space->huge_mapping) return true;
  }
  space->control = static_cast<Control*>(arena_reserve(maximum, space->unit));
  return space->control != nullptr;
}

void unmap(Space* space) {
  if (space->callers_memory) return;
  if (space->descriptor >= 0) {
    arena_calls.unmap(space->control, space->mapped);
    shared_close(space->descriptor);
    if (space->creator && space->shared_name[0] != '\0') shared_unlink(space->shared_name);
  } else {
    arena_release(space->control, space->mapped);
  }
}

// Bytes of the record of cached blocks.
uint64_t rest_bytes(const Space* space) {
  return space->threads == Threads::owner && space->cache_blocks != 0 ? rest_size(space->cache_largest) : 0;
}

void fit(Space* space) {
  if (space->rest != nullptr) fit_rest(space->engine, space->rest);
}

void copy_text(char* to, size_t room, const char* from) {
  size_t length = strlen(from);
  if (length >= room) length = room - 1;
  memcpy(to, from, length);
  to[length] = '\0';
}

// How much one thread's cache may hold if the program did not choose: little, compared with the space.
uint64_t cache_room(uint64_t initial) {
  constexpr uint64_t kMost = 512 << 10;
  const uint64_t part = initial / 256;
  return part == 0 ? 1 : part > kMost ? kMost : part;
}

void fill_handle(Space* space, const hummock_space_options_t& o) {
  static uint64_t serials;  // atomic; relaxed: only that they differ counts
  space->serial = __atomic_add_fetch(&serials, 1, __ATOMIC_RELAXED);
  space->threads = static_cast<Threads>(o.threads);
  space->zero = o.zero != 0;
  space->populate = o.populate;
  space->lock = o.lock;
  space->unit = o.memory != nullptr ? kGranule : o.huge_pages != kOff ? os::kHugePage : os::page_size();
  space->huge_pages = o.memory != nullptr ? kOff : o.huge_pages;
  space->no_fork = o.memory != nullptr ? kOff : o.no_fork;
  space->cache_blocks = o.cache_blocks;
  const size_t step = o.cache_step == 0 ? kDefaultStep : o.cache_step;
  const size_t usual = o.threads == HUMMOCK_SPACE_OWNER ? kDefaultResting : kDefaultLargest;
  space->cache_shift = base::log2_floor(step);
  space->cache_largest = o.cache_largest == 0 ? usual : o.cache_largest;
  space->cache_room = space->lends ? cache_room(o.initial) : 0;
  space->creator = true;
  space->owner = this_thread();
  if (o.shared != 0 && o.name != nullptr) copy_text(space->shared_name, sizeof space->shared_name, o.name);
}

int fill_control(Space* space, const hummock_space_options_t& o, uint64_t initial, uint64_t maximum,
                 uint64_t bytes) {
  Control* control = space->control;
  memset(static_cast<void*>(control), 0, sizeof(Control));
  control->version = kVersion;
  control->control_size = sizeof(Control);
  control->threads = space->threads;
  control->shared = o.shared;
  control->zero = o.zero;
  control->populate = o.populate;
  control->lock = o.lock;
  control->initial = initial;
  control->maximum = maximum;
  control->expand = o.expand;
  control->pending = bytes != initial ? initial : 0;
  control->bytes = bytes;
  if (o.name != nullptr) copy_text(control->name, kNameRoom, o.name);
  space->engine =
      make_engine(control + 1, maximum - sizeof(Control),
                  o.policy == HUMMOCK_SPACE_PROVEN ? Policy::proven : Policy::dense, rest_bytes(space));
  if (rest_bytes(space) != 0) {
    space->rest = make_rest(records_of(space->engine), space->cache_largest, space->cache_blocks);
  }
  extend(space->engine, bytes - sizeof(Control));
  fit(space);
  set_calls(space);
  int error = space->threads == Threads::inherit ? make_mutex(control) : 0;
  if (error == 0 && space->cache_blocks != 0 && space->rest == nullptr) error = make_cache_key(space);
  return error;
}

void name_memory(Space* space) {
  char text[kNameRoom + 16] = "hummock space ";
  copy_text(text + strlen(text), kNameRoom, space->control->name);
  if (space->descriptor < 0 && !space->callers_memory) os::name_mapping(space->control, space->mapped, text);
}

// `pool`: huge pages that the system set aside, if it has them.
bool make_on(Space* space, const hummock_space_options_t& o, bool pool) {
  fill_handle(space, o);
  const size_t unit = space->unit;
  const uint64_t initial = o.memory != nullptr ? align_down(o.initial, kGranule) : align_up(o.initial, unit);
  const uint64_t maximum = o.maximum <= initial ? initial : align_up(o.maximum, unit);
  if (!map(space, o, maximum, pool)) return false;
  // With room for a block: there is no shorter range.
  const uint64_t head =
      align_up(sizeof(Control) + engine_size(maximum) + rest_bytes(space) + kLeastBlock, unit);
  if (initial < head) return unmap(space), fail(EINVAL);
  const uint64_t bytes = o.reserve == HUMMOCK_SPACE_AT_FIRST ? head : initial;
  uint32_t has = wished(space);
  int error = secure(space, 0, bytes, &has) ? 0 : errno;
  if (error != 0 && space->huge_mapping) {  // then transparent ones, if they are to be had
    unmap(space);
    space->huge_mapping = false;
    return make_on(space, o, false);
  }
  if (error == 0) error = fill_control(space, o, initial, maximum, bytes);
  if (error != 0) return unmap(space), fail(error);
  space->control->achieved = has | (o.shared != 0 ? HUMMOCK_SPACE_SHARED : 0);
  space->out_of_forks = (has & HUMMOCK_SPACE_NO_FORK) != 0;
  name_memory(space);
  __atomic_store_n(&space->control->magic, kMagic, __ATOMIC_RELEASE);
  return true;
}

}  // namespace

bool make(Space* space, const hummock_space_options_t& o) {
  return is_right(o) ? make_on(space, o, true) : fail(EINVAL);
}

Space* create(const hummock_space_options_t& options, uint32_t* achieved) {
  Space* space = new_handle();
  if (space == nullptr) return nullptr;
  if (!make(space, options)) {
    const int why = errno;
    forget_handle(space);
    errno = why;
    return nullptr;
  }
  add_handle(space);
  if (achieved != nullptr) *achieved = space->control->achieved;
  return space;
}

void destroy(Space* space) {
  drop_handle(space);
  if (space->cache_blocks != 0 && space->rest == nullptr) pthread_key_delete(space->cache_key);
  unmap(space);
  forget_handle(space);
}

bool grow(Space* space, uint64_t bytes) {
  Control* control = space->control;
  const uint64_t left = control->maximum - control->bytes;
  if (bytes == 0 || bytes > left) return fail(ENOMEM);
  bytes = align_up(bytes, space->unit);
  const uint64_t to = control->bytes + bytes;
  uint32_t has = control->achieved;
  if (!secure(space, control->bytes, to, &has)) {
    const int why = errno;
    if (space->descriptor < 0 && !space->huge_mapping) arena_decommit(at_byte(space, control->bytes), bytes);
    return fail(why);
  }
  control->bytes = to;
  control->achieved = has;
  extend(space->engine, to - sizeof(Control));
  fit(space);
  ++control->expansions;
  return true;
}

int expand(Space* space, size_t bytes) {
  const base::KeepErrno keep;
  if (!enter(space)) return errno;
  Control* control = space->control;
  int error = 0;
  // First do what AT_FIRST left out.
  if (control->pending > control->bytes) {
    error = grow(space, control->pending - control->bytes) ? 0 : errno;
    if (error == 0) control->pending = 0;
  }
  const bool fits = bytes <= control->maximum - control->bytes;
  if (error == 0 && bytes != 0) error = fits && grow(space, bytes) ? 0 : (fits ? errno : ENOMEM);
  leave(space);
  return error;
}

size_t shrink(Space* space, size_t bytes) {
  if (space->callers_memory || space->huge_mapping || !enter(space)) return 0;
  wake(space);
  Control* control = space->control;
  const size_t unit = space->unit;
  const uint64_t least = control->initial < control->bytes ? control->initial : control->bytes;
  const uint64_t most = control->bytes - least;
  const uint64_t wish = align_down(bytes < most ? bytes : most, unit);
  const uint64_t before = control->bytes;
  // The engine ends where its last block lets it; the space, at the page behind.
  const uint64_t end = cut(space->engine, before - wish - sizeof(Control)) + sizeof(Control);
  uint64_t to = align_up(end, unit);
  if (to != end && to - end < kLeastBlock) to += unit;
  if (to > before) to = before;
  if (to != end) extend(space->engine, to - sizeof(Control));
  fit(space);
  const uint64_t gone = before - to;
  control->bytes = to;
  if (gone != 0 && space->descriptor < 0) arena_decommit(at_byte(space, to), gone);
  leave(space);
  return gone;
}

namespace {

struct Trimmed {
  Space* space;
  size_t bytes;
};

bool trim_range(void* context, uint64_t at, uint64_t value) {
  Trimmed* trimmed = static_cast<Trimmed*>(context);
  if ((value & kFree) == 0) return true;
  const size_t page = os::page_size();
  const uintptr_t base = reinterpret_cast<uintptr_t>(trimmed->space->engine);
  const uintptr_t from = align_up(base + at + 2 * kHeader, page);  // header and links stay
  const uintptr_t to = align_down(base + at + size_in(value) - 2 * kHeader, page);
  if (from < to && arena_purge(reinterpret_cast<void*>(from), to - from)) trimmed->bytes += to - from;
  return true;
}

}  // namespace

size_t trim(Space* space) {
  constexpr uint32_t kKept = HUMMOCK_SPACE_LOCKED | HUMMOCK_SPACE_HUGE_PAGES | HUMMOCK_SPACE_SHARED;
  if (space->callers_memory || space->huge_mapping || (space->control->achieved & kKept) != 0 ||
      !enter(space))
    return 0;
  wake(space);
  Trimmed trimmed = {space, 0};
  walk(space->engine, trim_range, &trimmed);
  if (trimmed.bytes != 0) space->control->achieved &= ~HUMMOCK_SPACE_POPULATED;
  leave(space);
  return trimmed.bytes;
}

}  // namespace hummock::space
