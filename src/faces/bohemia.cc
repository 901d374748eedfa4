// The interface of Bohemia Interactive's engine (Arma) to a custom allocator: eleven functions of
// hummock_bi.dll. Null is tolerated everywhere; sizes and alignments are in bytes.
#include "faces/bohemia.h"

#include "faces/family.h"
#include "faces/windows_start.h"
#include "os/windows.h"
#include "pages/metadata.h"
#include "pages/pages.h"

using namespace hummock;

namespace {

// The game may hand over any alignment; what is no power of two becomes the next one.
void* allocate_aligned(size_t size, size_t align) {
  const size_t power = faces::round_up_to_power(align);
  return power == 0 ? nullptr : faces::aligned(power, size);
}

size_t given_back() {
  return pages::totals().purged;
}

// Frees by other threads at the same time may count, too.
size_t flush(size_t wish) {
  const uint64_t since = os::log::ticks();
  const size_t before = given_back();
  const pages::Totals now = pages::totals();
  heap::trim(wish < now.dirty ? now.dirty - wish : 0);
  const size_t freed = given_back() - before;
  faces::note_flush(freed);
  const base::Line reason = base::Line("") << "gave back " << freed / 1024 << "k";
  os::log::event(since, wish < now.dirty ? wish : now.dirty, nullptr, "Flush", 0, &reason);
  return freed;
}

}  // namespace

extern "C" {

size_t HUMMOCK_BOHEMIA MemTotalCommitted() {
  const pages::Totals now = pages::totals();
  return now.used + now.dirty + now.headers + now.pinned_free + now.huge_bytes + pages::metadata_bytes();
}

size_t HUMMOCK_BOHEMIA MemTotalReserved() {
  return pages::totals().mapped + pages::metadata_bytes();
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
  os::log::write(base::Line("") << "EnableHugePages was called");
  faces::enable_large_pages();
}

}  // extern "C"
