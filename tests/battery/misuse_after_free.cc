// Use of freed blocks, and of the allocator's own records.
#include <dlfcn.h>
#include <string.h>

#include "misuse.h"

namespace battery {
namespace {

constexpr size_t kMiddle = 20 * KiB;
constexpr size_t kHuge = 40 * MiB;

alignas(16) char target[4096];

// ---- The link of a free block --------------------------------------------------------------------

// Others are freed before the one in question, so that its link leads somewhere, and others after it.
void* freed_here(int which = 3) {
  void* p[4];
  for (void*& block : p) block = in_crowd(64, 4, 4);
  for (void* block : p) call::free(block);
  return p[which];
}

void* freed_remotely(int which = 3) {
  void* p[4];
  for (void*& block : p) block = in_crowd(64, 4, 4);
  on_thread([&p] {
    for (void* block : p) call::free(block);
  });
  return p[which];
}

void overwrite_link(void* freed, const void* link) {
  borrow_unwritten(target, sizeof(target));
  memcpy(freed, &link, sizeof(link));
}

const void* const kGarbage = reinterpret_cast<void*>(0x4141414141414141);

void link_to_target() {
  overwrite_link(freed_here(), target + 64);
}
void link_garbage() {
  overwrite_link(freed_here(), kGarbage);
}
void remote_link_to_target() {
  overwrite_link(freed_remotely(), target + 64);
}
void remote_link_garbage() {
  overwrite_link(freed_remotely(), kGarbage);
}

// As a list of the program's own would do it: node->next = last, whose next is null. The list of free
// blocks, wherever it is as short as this, keeps its length.
void link_same_length() {
  overwrite_link(freed_here(1), target + 64);
}
void remote_link_same_length() {
  overwrite_link(freed_remotely(1), target + 64);
}
void remote_link_same_length_other_end() {
  overwrite_link(freed_remotely(2), target + 64);
}
// The same when one of the freed blocks has been handed out again already.
void link_after_malloc() {
  overwrite_link(still_free(), target + 64);
}
void link_zeroed() {
  overwrite_link(freed_here(), nullptr);
}

// ---- Use after free -------------------------------------------------------------------------------

char volatile seen;  // so that the read is made

void read_freed() {
  char* p = static_cast<char*>(freed_here());
  seen = p[32];
}

void write_freed(void* p, size_t from, size_t length) {
  memset(static_cast<char*>(p) + from, 'w', length);
}

void write_small() {
  write_freed(freed_here(), 0, 64);
}
void write_far() {
  write_freed(freed_here(), 40, 8);
}

void write_middle() {
  void* p = in_crowd(kMiddle, 2, 2);
  call::free(p);
  write_freed(p, 0, kMiddle);
}

void write_huge() {
  void* p = call::malloc(kHuge);
  memset(p, 'h', 4096);
  call::free(p);
  write_freed(p, 8192, 64);
}

// ---- The allocator's records ----------------------------------------------------------------------

// Of Hummock: each starts with a header for every 64 KiB; those of a huge block stand before it.
constexpr uintptr_t kRegion = 32 * MiB;
constexpr uintptr_t kSlot = 64 * KiB;
constexpr size_t kHeader = 128;

// Overwrites what the allocator knows of a live block: the slab's header in Hummock, the words before
// the block elsewhere.
void overwrite_records(void* block, int value) {
  char* p = static_cast<char*>(block);
  if (dlsym(RTLD_DEFAULT, "hummock_malloc") == nullptr) {
    memset(p - 16, value, 16);
    return;
  }
  const uintptr_t inside = reinterpret_cast<uintptr_t>(p) % kRegion;
  char* header = inside == 0 ? p - kSlot : p - inside + inside / kSlot * kHeader;
  // In checked mode the block itself may begin within reach: its own bytes stay as they are.
  const bool near = header < p && header + kHeader > p;
  memset(header, value, near ? static_cast<size_t>(p - header) : kHeader);
}

void live_block_overwritten(size_t size, int value) {
  void* p = in_crowd(size, 2, 2);
  keep(p, size);
  overwrite_records(p, value);
}

void records_small() {
  live_block_overwritten(64, 'm');
}
void records_zeroed() {
  live_block_overwritten(64, 0);
}
void records_large() {
  live_block_overwritten(300 * KiB, 'm');
}

void records_huge() {
  void* p = call::malloc(kHuge);
  keep(p, kHuge);
  overwrite_records(p, 'm');
}

constexpr char kLinks[] = "overwritten link";
constexpr char kUse[] = "use after free";
constexpr char kRecords[] = "overwritten records";
constexpr char kFree[] = "Hummock does not check these bytes of a free block";

constexpr Case kCases[] = {
    {"link_to_target", kLinks, "a freed block's first word set to the address of a variable", link_to_target},
    {"link_garbage", kLinks, "a freed block's first word set to 0x4141414141414141", link_garbage},
    {"remote_link_to_target", kLinks, "the same in a block freed by another thread", remote_link_to_target},
    {"remote_link_garbage", kLinks, "the same in a block freed by another thread", remote_link_garbage},
    {"link_same_length", kLinks, "a link set to a variable that holds 0, two from the end of the list",
     link_same_length},
    {"remote_link_same_length", kLinks, "the same in blocks freed by another thread",
     remote_link_same_length},
    {"remote_link_same_length_2", kLinks, "the same, two from the other end",
     remote_link_same_length_other_end},
    {"link_after_malloc", kLinks, "the same after one of the freed blocks was handed out again",
     link_after_malloc},
    {"link_zeroed", kLinks, "a freed block's first word set to 0", link_zeroed},
    {"use_read", kUse, "a freed block is read", read_freed, 64, "a read leaves no trace",
     "a read leaves no trace; Hummock has poisoned the freed bytes"},
    {"use_write", kUse, "all 64 bytes of a freed block are written", write_small},
    {"use_write_far", kUse, "8 bytes near the end of a freed block are written", write_far, 64, kFree},
    {"use_write_middle", kUse, "all of a freed block of 20 KiB is written", write_middle, kMiddle, kFree},
    {"use_write_huge", kUse, "a freed block of 40 MiB is written", write_huge, kHuge,
     "the memory was returned to the system, so the write faults",
     "the memory was returned to the system, so the write faults"},
    {"records_small", kRecords, "the allocator's records of a 64-byte block are overwritten", records_small},
    {"records_zeroed", kRecords, "the same with zeros", records_zeroed},
    {"records_large", kRecords, "the same for a block of 300 KiB", records_large, 300 * KiB},
    {"records_huge", kRecords, "the same for a block of 40 MiB", records_huge, kHuge},
};

}  // namespace

const Cases after_free_cases{kCases};

}  // namespace battery
