// The os layer on Windows: address space and its memory, time.
#include "os/windows/extra.h"

#include <windows.h>

#include <psapi.h>

#include "base/bits.h"

// RtlGenRandom by its exported name.
extern "C" BOOLEAN NTAPI SystemFunction036(void* buffer, ULONG size);

namespace hummock::os {
namespace {

constexpr size_t kGranule = 64 << 10;  // of addresses

void* raw_alloc(void* at, size_t size, uint32_t type, uint32_t protection) {
  return VirtualAlloc(at, size, type, protection);
}
bool raw_free(void* at, size_t size, uint32_t type) {
  return VirtualFree(at, size, type) != 0;
}
size_t raw_large_page_minimum() {
  return GetLargePageMinimum();
}
bool raw_open_token(void** token) {
  return OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, token) != 0;
}
bool raw_lookup(void* luid) {
  return LookupPrivilegeValueA(nullptr, "SeLockMemoryPrivilege", static_cast<LUID*>(luid)) != 0;
}
bool raw_adjust(void* token, const void* luid) {
  TOKEN_PRIVILEGES wish = {};
  wish.PrivilegeCount = 1;
  wish.Privileges[0].Luid = *static_cast<const LUID*>(luid);
  wish.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
  return AdjustTokenPrivileges(token, FALSE, &wish, 0, nullptr, nullptr) != 0;
}
uint32_t raw_error() {
  return GetLastError();
}
void raw_set_error(uint32_t error) {
  SetLastError(error);
}

void* alloc(uintptr_t at, size_t size, uint32_t type) {
  return calls.virtual_alloc(reinterpret_cast<void*>(at), size, type, PAGE_READWRITE);
}

// The aligned place in [from, to) of that many bytes, or 0.
uintptr_t fit(uintptr_t from, uintptr_t to, size_t total, size_t align, size_t before) {
  if (from < kLeastAddress) from = kLeastAddress;
  const uintptr_t start = base::align_up(from + before, align) - before;
  return start >= from && start < to && to - start >= total ? start : 0;
}

// Asks for more and gives it back: its aligned part is free then, unless another thread is quicker.
uintptr_t find_by_surplus(size_t total, size_t align, size_t before) {
  size_t more;
  if (__builtin_add_overflow(total, align, &more)) return 0;
  void* all = calls.virtual_alloc(nullptr, more, MEM_RESERVE, PAGE_NOACCESS);
  if (all == nullptr) return 0;
  calls.virtual_free(all, 0, MEM_RELEASE);
  const uintptr_t from = reinterpret_cast<uintptr_t>(all);
  return fit(from, from + more, total, align, before);
}

// Does the caller agree to the place, if it has a say?
bool agrees(MayStand may, uintptr_t place, size_t size) {
  return may == nullptr || may(reinterpret_cast<void*>(place), size);
}

// Looks at the address space piece by piece: where it is tight, or handed out from its low end.
uintptr_t find_by_walk(size_t total, size_t align, size_t before, MayStand may) {
  static uintptr_t next = kLeastAddress;  // atomic, relaxed: a hint
  const uintptr_t begins[] = {__atomic_load_n(&next, __ATOMIC_RELAXED), kLeastAddress};
  for (uintptr_t at : begins) {
    MEMORY_BASIC_INFORMATION piece;
    while (VirtualQuery(reinterpret_cast<void*>(at), &piece, sizeof piece) == sizeof piece) {
      const uintptr_t from = base::align_up(reinterpret_cast<uintptr_t>(piece.BaseAddress), kGranule);
      const uintptr_t to = reinterpret_cast<uintptr_t>(piece.BaseAddress) + piece.RegionSize;
      uintptr_t found = piece.State == MEM_FREE ? fit(from, to, total, align, before) : 0;
      while (found != 0 && !agrees(may, found, total)) found = fit(found + align, to, total, align, before);
      if (found != 0) {
        __atomic_store_n(&next, found + total, __ATOMIC_RELAXED);
        return found;
      }
      if (to <= at) break;
      at = to;
    }
  }
  return 0;
}

// What map() handed out and unmap() did not get back, for unmap_maps().
constexpr size_t kMostMaps = 256;
void* maps[kMostMaps];  // atomic, relaxed, as the next: read when no other thread calls any more
size_t map_count;

// Before the address is free: another thread's map() may get it then.
void forget_map(void* address) {
  const size_t count = __atomic_load_n(&map_count, __ATOMIC_RELAXED);
  for (size_t i = 0; i < count && i < kMostMaps; ++i) {
    if (__atomic_load_n(&maps[i], __ATOMIC_RELAXED) == address)
      return __atomic_store_n(&maps[i], nullptr, __ATOMIC_RELAXED);
  }
}

}  // namespace

Calls calls = {raw_alloc,  raw_free,  raw_large_page_minimum, raw_open_token, raw_lookup,
               raw_adjust, raw_error, raw_set_error};

void* place(size_t size, size_t align, size_t before, uint32_t type, MayStand may) {
  size_t total;
  if (__builtin_add_overflow(size, before, &total)) return nullptr;
  for (int tries = 0; tries < 16; ++tries) {
    uintptr_t at = tries < 4 ? find_by_surplus(total, align, before) : 0;
    if (at == 0 || !agrees(may, at, total)) at = find_by_walk(total, align, before, may);
    if (at == 0) {
      calls.set_last_error(ERROR_NOT_ENOUGH_MEMORY);
      return nullptr;
    }
    if (void* mapped = alloc(at, total, type)) return static_cast<char*>(mapped) + before;
    if (calls.last_error() != ERROR_INVALID_ADDRESS) return nullptr;  // else somebody else has the place
  }
  return nullptr;
}

size_t page_size() {
  static size_t cached;
  size_t size = __atomic_load_n(&cached, __ATOMIC_RELAXED);  // all writers write the same
  if (size == 0) {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    size = info.dwPageSize;
    __atomic_store_n(&cached, size, __ATOMIC_RELAXED);
  }
  return size;
}

void* map(size_t size) {
  KeepError keep;
  void* mapped = alloc(0, size, MEM_RESERVE | MEM_COMMIT);
  if (mapped == nullptr) return nullptr;
  const size_t number = __atomic_fetch_add(&map_count, 1, __ATOMIC_RELAXED);
  if (number < kMostMaps) __atomic_store_n(&maps[number], mapped, __ATOMIC_RELAXED);
  return mapped;
}

void unmap_maps() {
  const size_t count = map_count < kMostMaps ? map_count : kMostMaps;
  for (size_t i = 0; i < count; ++i) {
    if (maps[i] != nullptr) calls.virtual_free(maps[i], 0, MEM_RELEASE);
  }
  map_count = 0;
}

void* map_aligned(size_t size, size_t align, size_t before) {
  KeepError keep;
  return place(size, align, before, MEM_RESERVE | MEM_COMMIT);
}

void* reserve_where(size_t size, size_t align, MayStand may) {
  KeepError keep;
  return place(size, align, 0, MEM_RESERVE, may);
}

bool name_mapping(void*, size_t, const char*) {
  return false;
}

bool has_mapping_left(void*, size_t) {
  return true;
}

bool deny(void* address, size_t size) {
  KeepError keep;
  return calls.virtual_free(address, size, MEM_DECOMMIT);
}

bool allow(void* address, size_t size) {
  return commit(address, size);
}

bool commit(void* address, size_t size) {
  KeepError keep;
  return calls.virtual_alloc(address, size, MEM_COMMIT, PAGE_READWRITE) != nullptr;
}

// Reservations do not grow.
void* map_apart(size_t, size_t, size_t) {
  return nullptr;
}

// No part of a reservation can be unmapped, so there is none to map again.
Filled map_if_free(void*, size_t) {
  return Filled::refused;
}
size_t room_left() {
  return 0;
}

// Windows takes back whole reservations only.
bool unmap(void* address, size_t) {
  KeepError keep;
  MEMORY_BASIC_INFORMATION piece;
  if (VirtualQuery(address, &piece, sizeof piece) != sizeof piece) return false;
  if (piece.AllocationBase != address) return false;
  forget_map(address);
  return calls.virtual_free(address, 0, MEM_RELEASE);
}

bool purge(void* address, size_t size) {
  KeepError keep;
  return calls.virtual_free(address, size, MEM_DECOMMIT);
}

// Only into what is left of the same reservation after it was cut.
bool resize_in_place(void* address, size_t old_size, size_t new_size) {
  KeepError keep;
  char* from = static_cast<char*>(address);
  MEMORY_BASIC_INFORMATION piece;
  if (VirtualQuery(from, &piece, sizeof piece) != sizeof piece) return false;
  const void* whole = piece.AllocationBase;
  for (char* at = from + old_size; at < from + new_size;) {
    if (VirtualQuery(at, &piece, sizeof piece) != sizeof piece || piece.AllocationBase != whole) return false;
    at = static_cast<char*>(piece.BaseAddress) + piece.RegionSize;
  }
  return commit(from + old_size, new_size - old_size);
}

bool move_pages(void*, size_t, size_t, void*) {
  return false;
}

bool lift_pages(void*, size_t, void*) {
  return false;
}

uint64_t now_ms() {
  return GetTickCount64();
}

uint64_t now_ns() {
  LARGE_INTEGER now;
  LARGE_INTEGER rate;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&rate);
  const uint64_t ticks = static_cast<uint64_t>(now.QuadPart), second = static_cast<uint64_t>(rate.QuadPart);
  return ticks / second * 1'000'000'000 + ticks % second * 1'000'000'000 / second;
}

size_t resident_bytes() {
  KeepError keep;
  PROCESS_MEMORY_COUNTERS counters = {};
  counters.cb = sizeof counters;
  if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters)) return 0;
  return counters.WorkingSetSize;
}

size_t available_bytes() {
  KeepError keep;
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof memory;
  if (!GlobalMemoryStatusEx(&memory)) return 0;
  return memory.ullAvailPhys < SIZE_MAX ? static_cast<size_t>(memory.ullAvailPhys) : SIZE_MAX;
}

uint64_t random_word() {
  uint64_t word = 0;
  if (SystemFunction036(&word, sizeof word) != 0) return word;
  LARGE_INTEGER ticks;
  QueryPerformanceCounter(&ticks);
  word = (static_cast<uint64_t>(ticks.QuadPart) ^ reinterpret_cast<uintptr_t>(&word)) * 0x9e3779b97f4a7c15u;
  return word ^ (word >> 31);
}

void yield() {
  SwitchToThread();
}

bool is_privileged() {
  return false;
}

}  // namespace hummock::os
