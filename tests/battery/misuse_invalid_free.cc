// Frees of what is no block: inside a block, before it, other memory, no memory.
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "misuse.h"

namespace battery {
namespace {

constexpr size_t kLarge = 300 * KiB;
constexpr size_t kHuge = 40 * MiB;

void free_at(uintptr_t address) {
  call::free(reinterpret_cast<void*>(address));
}

// A live block of `size`, freed at `offset` from its start.
void free_inside(size_t size, ptrdiff_t offset) {
  const size_t neighbours = size > 64 * KiB ? 1 : 16;
  char* p = static_cast<char*>(in_crowd(size, neighbours, neighbours));
  keep_unchecked(p, size);
  call::free(p + offset);
}

void interior_1() {
  free_inside(64, 1);
}
void interior_8() {
  free_inside(64, 8);
}
void interior_16() {
  free_inside(64, 16);
}
void interior_middle() {
  free_inside(1024, 512);
}
void interior_large() {
  free_inside(kLarge, 128 * KiB);
}
void interior_huge() {
  free_inside(kHuge, 20 * MiB);
}
void interior_huge_page() {
  free_inside(kHuge, 4096);
}

// Inside whatever block is before it.
void before() {
  char* p[33];
  for (char*& block : p) {
    block = static_cast<char*>(call::malloc(64));
    keep_unchecked(block, 64);
  }
  call::free(p[16] - 16);
}

// Behind the blocks of its size that were ever handed out.
void never_allocated() {
  char* highest = nullptr;
  for (int i = 0; i < 20; ++i) {
    char* p = static_cast<char*>(call::malloc(176));
    keep(p, 176);
    highest = std::max(highest, p);
  }
  const size_t stride = (call::usable(highest) + 15) / 16 * 16;
  call::free(highest + 2 * stride);
}

// ---- Other memory -------------------------------------------------------------------------------

alignas(16) char static_room[4096];

void stack() {
  alignas(16) char room[256];
  borrow(room, sizeof(room));
  call::free(room + 64);
  probation(64);  // while the room is live
  _Exit(kPassed);
}

void static_memory() {
  borrow(static_room, sizeof(static_room));
  call::free(static_room + 1024);
}

void code() {
  const uintptr_t here = reinterpret_cast<uintptr_t>(&code) / 16 * 16;
  borrow_unwritten(reinterpret_cast<void*>(here), 64);
  free_at(here);
}

void argv_text() {
  borrow_unwritten(arguments[1], strlen(arguments[1]) + 1);
  call::free(arguments[1]);
}

// What an attacker would lay out: a chunk as glibc would make it, with one after it.
void fake_chunk() {
  borrow_unwritten(static_room, sizeof(static_room));
  const size_t size = 0x41;
  memcpy(static_room + 8, &size, sizeof(size));
  memcpy(static_room + 0x48, &size, sizeof(size));
  call::free(static_room + 16);
}

char* map(size_t size) {
  void* room =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) end(kSkipped, "skipped: no address space");
  return static_cast<char*>(room);
}

void foreign_mapping() {
  char* room = map(1 * MiB);
  borrow(room, 1 * MiB);
  call::free(room + 64 * KiB);
}

// At a start that allocators like for their own regions.
void foreign_aligned() {
  constexpr size_t kAlignment = 64 * MiB;
  char* room = map(2 * kAlignment);
  room += (kAlignment - reinterpret_cast<uintptr_t>(room) % kAlignment) % kAlignment;
  borrow(room, 1 * MiB);
  call::free(room);
}

void foreign_aligned_inside() {
  constexpr size_t kAlignment = 64 * MiB;
  char* room = map(2 * kAlignment);
  room += (kAlignment - reinterpret_cast<uintptr_t>(room) % kAlignment) % kAlignment;
  borrow(room, 1 * MiB);
  call::free(room + 64 * KiB + 64);
}

// From the C library's own malloc, behind the back of the one that took its place.
void block_of_libc() {
  void* libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  if (libc == nullptr) end(kSkipped, "skipped: the C library is not libc.so.6");
  const auto libc_malloc = reinterpret_cast<void* (*)(size_t)>(dlsym(libc, "malloc"));
  if (libc_malloc == call::malloc) end(kSkipped, "skipped: the C library's malloc is in use");
  void* p = libc_malloc(64);
  borrow(p, 64);
  call::free(p);
}

void low() {
  free_at(0x10);
}
void low_page() {
  free_at(0x1000);
}
void not_canonical() {
  free_at(0x4141414141414140);
}
void wild() {
  free_at(0x5ead00000010);
}
void kernel() {
  free_at(0xffffffff81000000);
}

constexpr char kFamily[] = "invalid free";

constexpr Case kCases[] = {
    {"free_interior_1", kFamily, "free(p + 1)", interior_1},
    {"free_interior_8", kFamily, "free(p + 8)", interior_8},
    {"free_interior_16", kFamily, "free(p + 16) of 64 bytes", interior_16},
    {"free_interior_middle", kFamily, "free(p + 512) of 1 KiB", interior_middle, 1024},
    {"free_interior_large", kFamily, "free(p + 128 KiB) of 300 KiB", interior_large, kLarge},
    {"free_interior_huge", kFamily, "free(p + 20 MiB) of 40 MiB", interior_huge, kHuge},
    {"free_interior_huge_page", kFamily, "free(p + 4096) of 40 MiB", interior_huge_page, kHuge},
    {"free_before", kFamily, "free(p - 16)", before},
    {"free_never_allocated", kFamily, "an address between blocks that no call has given yet", never_allocated,
     176},
    {"free_stack", kFamily, "a local variable", stack},
    {"free_static", kFamily, "a static variable", static_memory},
    {"free_code", kFamily, "a function", code},
    {"free_argv", kFamily, "an element of argv", argv_text},
    {"free_fake_chunk", kFamily, "static memory that looks like a chunk of glibc", fake_chunk, 48},
    {"free_foreign_mapping", kFamily, "memory from mmap", foreign_mapping},
    {"free_foreign_aligned", kFamily, "memory from mmap at a multiple of 64 MiB", foreign_aligned},
    {"free_foreign_aligned_inside", kFamily, "the same, 64 KiB + 64 inside", foreign_aligned_inside},
    {"free_block_of_libc", kFamily, "a block of the C library's own malloc", block_of_libc},
    {"free_low", kFamily, "address 0x10", low},
    {"free_low_page", kFamily, "address 0x1000", low_page},
    {"free_not_canonical", kFamily, "an address that no x86-64 pointer has", not_canonical},
    {"free_wild", kFamily, "an address where nothing is mapped", wild},
    {"free_kernel", kFamily, "an address of the kernel", kernel},
};

}  // namespace

const Cases invalid_free_cases{kCases};

}  // namespace battery
