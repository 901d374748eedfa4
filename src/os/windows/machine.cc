// The machine and the process, for the head of the region log.
#include <windows.h>

#include <cpuid.h>
#include <psapi.h>
#include <string.h>

#include "os/windows/extra.h"

namespace hummock::os {
namespace {

using base::Line;
using base::write_line;

Line begin(const char* name) {
  Line line("");
  line.text(name).text(": ");
  return line;
}

void describe_files(int fd) {
  char path[1024];
  HMODULE own = nullptr;
  const DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  const void* here = reinterpret_cast<const void*>(&describe_machine);
  GetModuleHandleExA(flags, static_cast<const char*>(here), &own);
  const auto tell = [&](const char* name, HMODULE module) {
    const DWORD length = GetModuleFileNameA(module, path, sizeof path);
    if (length != 0) write_line(fd, begin(name).text(path, length));
  };
  tell("program", nullptr);
  tell("library", own);
}

// GetVersionEx tells programs what they want to hear.
void describe_system(int fd) {
  using Call = LONG(WINAPI*)(OSVERSIONINFOEXW*);
  OSVERSIONINFOEXW version = {};
  version.dwOSVersionInfoSize = sizeof version;
  const auto call = reinterpret_cast<Call>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlGetVersion")));
  if (call == nullptr || call(&version) != 0) return;
  Line line = begin("system");
  line << "Windows " << version.dwMajorVersion << "." << version.dwMinorVersion << "."
       << version.dwBuildNumber;
  line << ", service pack " << static_cast<unsigned>(version.wServicePackMajor) << "."
       << static_cast<unsigned>(version.wServicePackMinor);
  write_line(fd, line << (version.wProductType == VER_NT_WORKSTATION ? ", desktop" : ", server"));
}

void describe_processor(int fd) {
  Line line = begin("cpu");
  unsigned brand[13] = {};
  unsigned eax, ebx, ecx, edx;
  if (__get_cpuid(0x80000004, &eax, &ebx, &ecx, &edx) != 0) {
    for (unsigned i = 0; i < 3; ++i) {
      unsigned* part = brand + 4 * i;
      __get_cpuid(0x80000002 + i, &part[0], &part[1], &part[2], &part[3]);
    }
  }
  line << reinterpret_cast<const char*>(brand) << ", " << GetActiveProcessorCount(ALL_PROCESSOR_GROUPS)
       << " logical in " << static_cast<unsigned>(GetActiveProcessorGroupCount()) << " group(s), process of "
       << static_cast<unsigned>(8 * sizeof(void*)) << " bits";
  write_line(fd, line);
}

void describe_memory(int fd) {
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof memory;
  if (GlobalMemoryStatusEx(&memory)) {
    const auto size = [](uint64_t bytes) { return static_cast<size_t>(bytes >> 20); };
    write_line(fd, begin("memory") << "total " << size(memory.ullTotalPhys) << " MiB, available "
                                   << size(memory.ullAvailPhys) << " MiB");
    write_line(fd, begin("address space") << "available " << size(memory.ullAvailVirtual) << " MiB");
  }
  PERFORMANCE_INFORMATION info = {};
  info.cb = sizeof info;
  if (!GetPerformanceInfo(&info, sizeof info)) return;
  const auto mib = [&](SIZE_T pages) { return uint64_t{pages} * info.PageSize >> 20; };
  write_line(fd, begin("commit") << "limit " << mib(info.CommitLimit) << " MiB, peak " << mib(info.CommitPeak)
                                 << " MiB, current " << mib(info.CommitTotal) << " MiB");
  write_line(fd, begin("system cache") << mib(info.SystemCache) << " MiB");
  write_line(fd, begin("processes") << info.ProcessCount << ", threads " << info.ThreadCount << ", handles "
                                    << info.HandleCount);
}

}  // namespace

void describe_machine(int fd) {
  KeepError keep;
  describe_files(fd);
  describe_system(fd);
  describe_processor(fd);
  describe_memory(fd);
  write_line(fd, begin("uptime") << GetTickCount64() / 60000 << " minutes");
  Line line = begin("SeLockMemoryPrivilege");
  describe_large_pages(line);
  write_line(fd, line);
}

}  // namespace hummock::os
