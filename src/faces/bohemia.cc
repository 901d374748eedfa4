// The interface of Bohemia Interactive's engine (Arma) to a custom allocator: eleven functions of
// hummock_bi.dll. Null is tolerated everywhere; sizes and alignments are in bytes.
#include "faces/bohemia.h"

#include "base/message.h"
#include "faces/family.h"
#include "faces/windows_start.h"
#include "os/region_log.h"
#include "pages/backing.h"
#include "pages/metadata.h"
#include "pages/pages.h"

using namespace hummock;

namespace {

// The game may hand over any alignment; what is no power of two becomes the next one.
void* allocate_aligned(size_t size, size_t align) {
  const size_t power = faces::round_up_to_power(align);
  return power == 0 ? nullptr : faces::aligned(power, size);
}

// May count what other threads return at the same time, too.
size_t flush(size_t wish) {
  os::Event event;
  const pages::Totals before = pages::totals();
  const size_t most = before.dirty - before.kept;
  heap::trim(wish < most ? most - wish : 0);
  const size_t freed = pages::totals().purged - before.purged;
  faces::note_flush(freed);
  base::Line reason("gave back ");
  reason.dec(freed / 1024).text("k");
  event.log("Flush", nullptr, wish < most ? wish : most, 0, reason.c_str());
  return freed;
}

// Bytes that are neither in blocks nor free for blocks: headers, records, and large pages not in use yet.
size_t around(const pages::Totals& now) {
  return now.headers + now.huge_blocks * kSlotSize + pages::reserved_bytes() + pages::metadata_bytes();
}

}  // namespace

extern "C" {

size_t HUMMOCK_BOHEMIA MemTotalCommitted() {
  const pages::Totals now = pages::totals();
  return now.used + now.dirty + now.huge_bytes + around(now);
}

size_t HUMMOCK_BOHEMIA MemTotalReserved() {
  const pages::Totals now = pages::totals();
  return now.mapped - now.headers + around(now);
}

size_t HUMMOCK_BOHEMIA MemFlushCache(size_t size) {
  return size == 0 ? 0 : flush(size);
}

void HUMMOCK_BOHEMIA MemFlushCacheAll() {
  flush(SIZE_MAX);
}

size_t HUMMOCK_BOHEMIA MemSize(void* block) {
  return faces::usable_size(block);
}

void* HUMMOCK_BOHEMIA MemAlloc(size_t size) {
  return heap::allocate(size);
}

void HUMMOCK_BOHEMIA MemFree(void* block) {
  heap::release(block);
}

size_t HUMMOCK_BOHEMIA MemSizeA(void* block, size_t) {
  return faces::usable_size(block);
}

void* HUMMOCK_BOHEMIA MemAllocA(size_t size, size_t align) {
  return allocate_aligned(size, align);
}

void HUMMOCK_BOHEMIA MemFreeA(void* block) {
  heap::release(block);
}

void HUMMOCK_BOHEMIA EnableHugePages() {
  faces::enable_large_pages();
}

}  // extern "C"
