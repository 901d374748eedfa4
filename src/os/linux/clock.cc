// The kernel's clock, past libc's clock_gettime: a program or a preloaded library may have one of its own
// (libfaketime), which may call malloc while malloc holds a lock. So the kernel's function is found in the
// vDSO, the shared object that it maps into every process; where there is none, a system call answers.
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "os/os.h"

namespace hummock::os {
namespace {

// Where a long has 32 bits there are two of each: one for times of 32 bits, one for those of 64.
constexpr bool kLongTimes = sizeof(time_t) > sizeof(long);
#if defined(__aarch64__)
constexpr char kName[] = "__kernel_clock_gettime";
#else
constexpr const char* kName = kLongTimes ? "__vdso_clock_gettime64" : "__vdso_clock_gettime";
#endif
#if defined(SYS_clock_gettime64)
constexpr long kCall = kLongTimes ? SYS_clock_gettime64 : SYS_clock_gettime;
#else
constexpr long kCall = SYS_clock_gettime;
#endif

int by_system_call(clockid_t which, timespec* now) {
  const base::KeepErrno keep;
  return static_cast<int>(syscall(kCall, which, now));
}

// The names of an ELF object stand right behind its symbols; the kernel links the vDSO so. Addresses in it
// count from where it begins.
Clock look_up(const char* start, const ElfW(Dyn) * dynamic) {
  const char* names = nullptr;
  const ElfW(Sym)* symbol = nullptr;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_STRTAB) names = start + dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SYMTAB) symbol = reinterpret_cast<const ElfW(Sym)*>(start + dynamic->d_un.d_ptr);
  }
  if (symbol == nullptr) return nullptr;
  for (; reinterpret_cast<const char*>(symbol + 1) <= names; ++symbol) {
    if (symbol->st_shndx != SHN_UNDEF && strcmp(names + symbol->st_name, kName) == 0)
      return reinterpret_cast<Clock>(reinterpret_cast<uintptr_t>(start + symbol->st_value));
  }
  return nullptr;
}

Clock find_clock() {
  const auto* file = reinterpret_cast<const ElfW(Ehdr)*>(getauxval(AT_SYSINFO_EHDR));
  if (file == nullptr) return nullptr;
  const char* start = reinterpret_cast<const char*>(file);
  const auto* part = reinterpret_cast<const ElfW(Phdr)*>(start + file->e_phoff);
  for (unsigned i = 0; i < file->e_phnum; ++i) {
    if (part[i].p_type == PT_LOAD && part[i].p_vaddr != part[i].p_offset) return nullptr;
    if (part[i].p_type == PT_DYNAMIC)
      return look_up(start, reinterpret_cast<const ElfW(Dyn)*>(start + part[i].p_offset));
  }
  return nullptr;
}

// Two threads that come first find the same.
int first_look(clockid_t which, timespec* now) {
  const Clock found = find_clock();
  __atomic_store_n(&read_clock, found != nullptr ? found : by_system_call, __ATOMIC_RELAXED);
  return read_clock(which, now);
}

timespec ask(clockid_t which) {
  timespec now = {};
  __atomic_load_n(&read_clock, __ATOMIC_RELAXED)(which, &now);
  return now;
}

}  // namespace

Clock read_clock = first_look;

uint64_t now_ms() {
  const timespec now = ask(CLOCK_MONOTONIC_COARSE);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

uint64_t now_ns() {
  const timespec now = ask(CLOCK_MONOTONIC);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t seconds_since_1970() {
  return static_cast<uint64_t>(ask(CLOCK_REALTIME).tv_sec);
}

}  // namespace hummock::os
