#include "faces/windows_divert.h"

#include <string.h>

namespace hummock::faces {
namespace {

constexpr size_t kJump = 5;         // E9 and a distance of 32 bits
constexpr size_t kDetourRoom = 16;  // a jump to any address
constexpr size_t kPage = 4096;
constexpr uintptr_t kReach = uintptr_t{1} << 30;  // surely within a distance of 31 bits, the module included

bool reaches(const unsigned char* from, const void* to) {
  const intptr_t distance = static_cast<const unsigned char*>(to) - (from + kJump);
  return sizeof(void*) == 4 || distance == static_cast<int32_t>(distance);
}

// A page that every function of the module can jump to.
unsigned char* page_near(HMODULE module) {
  SYSTEM_INFO system;
  GetSystemInfo(&system);
  const uintptr_t step = system.dwAllocationGranularity;
  const uintptr_t base = reinterpret_cast<uintptr_t>(module) & ~(step - 1);
  for (uintptr_t off = step; off < kReach; off += step) {
    const uintptr_t either[] = {base + off, base - off};
    for (const uintptr_t at : either) {
      MEMORY_BASIC_INFORMATION region;
      if (VirtualQuery(reinterpret_cast<void*>(at), &region, sizeof region) == 0 || region.State != MEM_FREE)
        continue;
      void* page = VirtualAlloc(reinterpret_cast<void*>(at), kPage, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
      if (page != nullptr) return static_cast<unsigned char*>(page);
    }
  }
  return nullptr;
}

// jmp [rip + 0], and the address.
void write_detour(unsigned char* at, void* target) {
  const unsigned char code[] = {0xff, 0x25, 0, 0, 0, 0};
  memcpy(at, code, sizeof code);
  memcpy(at + sizeof code, &target, sizeof target);
}

}  // namespace

bool prepare(HMODULE module, Diversion* diversions, size_t count) {
  if (count * kDetourRoom > kPage) return false;
  unsigned char* page = sizeof(void*) == 8 ? page_near(module) : nullptr;
  if (sizeof(void*) == 8 && page == nullptr) return false;
  for (size_t i = 0; i < count; ++i) {
    Diversion& each = diversions[i];
    void* to = each.target;
    if (page != nullptr) {
      to = page + i * kDetourRoom;
      write_detour(static_cast<unsigned char*>(to), each.target);
    }
    // At such a place eight bytes are written at once; and no other function begins within them.
    if (reinterpret_cast<uintptr_t>(each.function) % 8 != 0 || !reaches(each.function, to)) return false;
    memcpy(&each.before, each.function, sizeof each.before);
    unsigned char bytes[8];
    memcpy(bytes, &each.before, sizeof bytes);
    const int32_t distance = static_cast<int32_t>(static_cast<unsigned char*>(to) - (each.function + kJump));
    bytes[0] = 0xe9;
    memcpy(bytes + 1, &distance, sizeof distance);
    memcpy(&each.jump, bytes, sizeof each.jump);
    DWORD old;
    if (!VirtualProtect(each.function, 8, PAGE_EXECUTE_READWRITE, &old)) return false;
    VirtualProtect(each.function, 8, old, &old);
  }
  DWORD old;
  return page == nullptr || VirtualProtect(page, kPage, PAGE_EXECUTE_READ, &old);
}

void write_jump(const Diversion& diversion, bool jump) {
  DWORD old;
  if (!VirtualProtect(diversion.function, 8, PAGE_EXECUTE_READWRITE, &old)) return;
  // release: pairs with the processor's own reading of instructions, after which the detour is read.
  __atomic_store_n(reinterpret_cast<uint64_t*>(diversion.function), jump ? diversion.jump : diversion.before,
                   __ATOMIC_RELEASE);
  VirtualProtect(diversion.function, 8, old, &old);
  FlushInstructionCache(GetCurrentProcess(), diversion.function, 8);
}

}  // namespace hummock::faces
