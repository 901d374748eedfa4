// Allocators with known bugs, to be preloaded; BROKEN names the bug: twice, overlap, dirty, lost, full.
// Without it the allocator is right, if wasteful: nothing is ever freed.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

namespace {

constexpr size_t kRoom = size_t{4} << 30;
constexpr unsigned kEvery = 1000;  // calls until the bug shows

enum class Bug { kUnknown, kNone, kTwice, kOverlap, kDirty, kLost, kFull };

Bug bug;
char* next_block;
char* end_of_room;
char* last_block;
size_t last_size;
unsigned calls;
int lock;

Bug find_bug() {
  static constexpr struct {
    const char* name;
    Bug bug;
  } kBugs[] = {{"twice", Bug::kTwice},
               {"overlap", Bug::kOverlap},
               {"dirty", Bug::kDirty},
               {"lost", Bug::kLost},
               {"full", Bug::kFull}};
  const char* name = getenv("BROKEN");
  for (const auto& each : kBugs)
    if (name != nullptr && strcmp(name, each.name) == 0) return each.bug;
  return Bug::kNone;
}

void begin() {
  void* room =
      mmap(nullptr, kRoom, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) abort();
  next_block = static_cast<char*>(room);
  end_of_room = next_block + kRoom;
  bug = find_bug();
}

// Before each block stands its size, twice.
size_t size_of(void* block) {
  return static_cast<size_t*>(block)[-2];
}

void write_header(void* block, size_t size) {
  static_cast<size_t*>(block)[-2] = size;
  static_cast<size_t*>(block)[-1] = ~size;
}

void* locked_take(size_t size, size_t alignment) {
  if (bug == Bug::kUnknown) begin();
  const bool now = ++calls % kEvery == 0;
  if (now && bug == Bug::kFull) return nullptr;
  if (now && bug == Bug::kTwice && size <= last_size) return last_block;
  const auto start = (reinterpret_cast<size_t>(next_block) + 16 + alignment - 1) & ~(alignment - 1);
  char* block = reinterpret_cast<char*>(start);
  if (size > static_cast<size_t>(end_of_room - block)) return nullptr;
  write_header(block, size);
  next_block = block + ((size + 15) & ~size_t{15});
  // The next block's header then stands in this one's end.
  if (now && bug == Bug::kOverlap) next_block -= size >= 16 ? 16 : 0;
  last_block = block;
  last_size = size;
  return block;
}

void* take(size_t size, size_t alignment) {
  while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0) {
  }
  void* block = locked_take(size, alignment);
  __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
  return block;
}

}  // namespace

extern "C" {

void* malloc(size_t size) {
  return take(size, 16);
}
void free(void*) {}

void* calloc(size_t count, size_t size) {
  void* block = take(count * size, 16);
  if (bug == Bug::kDirty && block != nullptr && calls % kEvery == 0) memset(block, 1, count * size);
  return block;
}

void* realloc(void* block, size_t size) {
  void* moved = take(size, 16);
  if (block == nullptr || moved == nullptr) return moved;
  const size_t kept = size_of(block) < size ? size_of(block) : size;
  if (bug != Bug::kLost || calls % kEvery != 0) memcpy(moved, block, kept);
  return moved;
}

void* aligned_alloc(size_t alignment, size_t size) {
  return take(size, alignment < 16 ? 16 : alignment);
}
void* memalign(size_t alignment, size_t size) {
  return aligned_alloc(alignment, size);
}
}
