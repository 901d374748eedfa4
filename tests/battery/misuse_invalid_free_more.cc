// Frees of what is no block: other places, other threads, sums that come out even.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "misuse.h"

namespace battery {
namespace {

constexpr size_t kLarge = 300 * KiB;
constexpr size_t kHuge = 40 * MiB;

void free_at(uintptr_t address) {
  call::free(reinterpret_cast<void*>(address));
}

char* unchecked(size_t size) {
  char* p = static_cast<char*>(call::malloc(size));
  keep_unchecked(p, size);
  return p;
}

// ---- Offsets that add up to whole blocks ----------------------------------------------------------

template <size_t kSize, size_t kOffset, int kTimes>
void adding_up() {
  char* p[kTimes];
  for (char*& block : p) block = unchecked(kSize);
  for (char* block : p) call::free(block + kOffset);
}

void adding_up_remotely() {
  char* p[4];
  for (char*& block : p) block = unchecked(64);
  on_thread([&p] {
    for (char* block : p) call::free(block + 16);
  });
}

// One too low and one too high.
void adding_up_to_nothing() {
  char* p[8];
  for (char*& block : p) block = unchecked(96);
  call::free(p[3] + 32);
  call::free(p[4] - 32);
}

// ---- By other threads -----------------------------------------------------------------------------

void interior_remote() {
  char* p = unchecked(64);
  on_thread([p] { call::free(p + 16); });
}

void interior_of_ended() {
  char* p = nullptr;
  on_thread([&p] { p = unchecked(64); });
  call::free(p + 16);
}

void interior_middle_remote() {
  char* p = unchecked(20 * KiB);
  on_thread([p] { call::free(p + 4096); });
}

// ---- Inside what is free ---------------------------------------------------------------------------

template <size_t kSize, size_t kOffset>
void inside_freed() {
  char* p = static_cast<char*>(in_crowd(kSize, 2, 2));
  call::free(p);
  call::free(p + kOffset);
}

void inside_freed_huge() {
  char* p = static_cast<char*>(call::malloc(kHuge));
  call::free(p);
  call::free(p + 1 * MiB);
}

// ---- Around blocks ----------------------------------------------------------------------------------

void end_of_huge() {
  char* p = unchecked(kHuge);
  call::free(p + kHuge);
}

void before_huge() {
  char* p = unchecked(kHuge);
  call::free(p - 64 * KiB);
}

void end_of_large() {
  char* p = unchecked(kLarge);
  call::free(p + kLarge - 16);
}

// Where Hummock has its records, or another slot of the region; with another allocator: somewhere near.
constexpr uintptr_t kRegion = 32 * MiB;

uintptr_t region_of_small() {
  return reinterpret_cast<uintptr_t>(unchecked(64)) / kRegion * kRegion;
}

void region_start() {
  free_at(region_of_small());
}
void among_records() {
  free_at(region_of_small() + 128 * 40);
}
void unused_slot() {
  free_at(region_of_small() + 30 * MiB);
}

void slab_start() {
  free_at(reinterpret_cast<uintptr_t>(unchecked(48)) / (64 * KiB) * (64 * KiB) + 8);
}

// A live block's address with other high bits: the same place in a table that is smaller than all there is.
constexpr const char* kAliasFaults =
    "free itself faults: the region map leads to the block's own header, and nothing is mapped at the "
    "address";

template <unsigned kBit>
void alias() {
  free_at(reinterpret_cast<uintptr_t>(unchecked(64)) ^ (uintptr_t{1} << kBit));
}

// ---- Other memory -----------------------------------------------------------------------------------

thread_local char room_of_thread[256];

void thread_local_memory() {
  borrow(room_of_thread, sizeof(room_of_thread));
  free_at(reinterpret_cast<uintptr_t>(room_of_thread + 64) / 16 * 16);
}

void stack_of_other_thread() {
  on_thread([] {
    alignas(16) char room[256];
    borrow(room, sizeof(room));
    char* inside = room + 64;
    on_thread([inside] { call::free(inside); });
    probation(64);
    _Exit(kPassed);
  });
}

void environment_text() {
  if (environ[0] == nullptr) end(kSkipped, "skipped: no environment");
  call::free(environ[0]);
}

void stream() {
  call::free(stdout);
}

void vdso() {
  const uintptr_t start = getauxval(AT_SYSINFO_EHDR);
  if (start == 0) end(kSkipped, "skipped: no vdso");
  free_at(start + 64);
}

void map_and_free(int rights, int flags, int fd) {
  void* room = mmap(nullptr, 1 * MiB, rights, flags, fd, 0);
  if (room == MAP_FAILED) end(kSkipped, "skipped: no such mapping");
  if (rights == (PROT_READ | PROT_WRITE)) borrow(room, 1 * MiB);
  call::free(static_cast<char*>(room) + 4096);
}

void shared_mapping() {
  map_and_free(PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
}
void closed_mapping() {
  map_and_free(PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}
void file_mapping() {
  map_and_free(PROT_READ, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY));
}

void minus_one() {
  free_at(~uintptr_t{0});
}
void minus_16() {
  free_at(~uintptr_t{15});
}
void one() {
  free_at(1);
}
void last_user_page() {
  free_at(0x7ffffffff000);
}

constexpr char kFamily[] = "invalid free";

constexpr Case kCases[] = {
    {"free_adding_up_64", kFamily, "free(p + 16) in four blocks of 64 bytes", adding_up<64, 16, 4>},
    {"free_adding_up_96", kFamily, "free(p + 32) in three blocks of 96 bytes", adding_up<96, 32, 3>, 96},
    {"free_adding_up_1024", kFamily, "free(p + 512) in two blocks of 1 KiB", adding_up<1024, 512, 2>, 1024},
    {"free_adding_up_3k", kFamily, "free(p + 1 KiB) in three blocks of 3 KiB", adding_up<3 * KiB, 1 * KiB, 3>,
     3 * KiB},
    {"free_adding_up_remotely", kFamily, "free(p + 16) in four blocks of 64 bytes, by another thread",
     adding_up_remotely},
    {"free_adding_up_to_nothing", kFamily, "free(p + 32), free(q - 32), 96 bytes", adding_up_to_nothing, 96},
    {"free_interior_remote", kFamily, "free(p + 16) of 64 bytes by another thread", interior_remote},
    {"free_interior_middle_remote", kFamily, "free(p + 4096) of 20 KiB by another thread",
     interior_middle_remote, 20 * KiB},
    {"free_interior_owner_ended", kFamily, "free(p + 16) of 64 bytes of a thread that ended",
     interior_of_ended},
    {"free_inside_freed", kFamily, "free(p), free(p + 16), 64 bytes", inside_freed<64, 16>},
    {"free_inside_freed_middle", kFamily, "free(p), free(p + 4096), 20 KiB", inside_freed<20 * KiB, 4096>,
     20 * KiB},
    {"free_inside_freed_large", kFamily, "free(p), free(p + 128 KiB), 300 KiB",
     inside_freed<kLarge, 128 * KiB>, kLarge},
    {"free_inside_freed_huge", kFamily, "free(p), free(p + 1 MiB), 40 MiB", inside_freed_huge, kHuge},
    {"free_end_of_large", kFamily, "16 bytes before the end of 300 KiB", end_of_large, kLarge},
    {"free_end_of_huge", kFamily, "the first byte behind 40 MiB", end_of_huge, kHuge},
    {"free_before_huge", kFamily, "64 KiB before 40 MiB", before_huge, kHuge},
    {"free_region_start", kFamily, "the multiple of 32 MiB before a block", region_start},
    {"free_among_records", kFamily, "an address among the allocator's own records", among_records},
    {"free_unused_slot", kFamily, "an address of the allocator's that no block ever had", unused_slot},
    {"free_slab_start", kFamily, "near the start of the 64 KiB in which a block stands", slab_start, 48},
    {"free_alias_41", kFamily, "a block's address, bit 41 changed", alias<41>, 64, kAliasFaults},
    {"free_alias_46", kFamily, "a block's address, bit 46 changed", alias<46>, 64, kAliasFaults},
    {"free_alias_48", kFamily, "a block's address, bit 48 changed", alias<48>},
    {"free_alias_56", kFamily, "a block's address with a tag in its top byte", alias<56>},
    {"free_alias_63", kFamily, "a block's address, bit 63 changed", alias<63>},
    {"free_thread_local", kFamily, "a thread-local variable", thread_local_memory},
    {"free_stack_of_thread", kFamily, "a local variable of another thread", stack_of_other_thread},
    {"free_environment", kFamily, "an element of environ", environment_text},
    {"free_stream", kFamily, "stdout", stream},
    {"free_vdso", kFamily, "what the kernel maps into each process", vdso},
    {"free_shared_mapping", kFamily, "memory that processes share", shared_mapping},
    {"free_closed_mapping", kFamily, "memory that nobody may read", closed_mapping},
    {"free_file_mapping", kFamily, "a file that is mapped", file_mapping},
    {"free_one", kFamily, "address 1", one},
    {"free_minus_one", kFamily, "address -1", minus_one},
    {"free_minus_16", kFamily, "address -16", minus_16},
    {"free_last_page", kFamily, "the last address that a program can have", last_user_page},
};

}  // namespace

const Cases invalid_free_more_cases{kCases};

}  // namespace battery
