// The machine and the process as the log's first lines tell them.
#include <windows.h>

#include <cpuid.h>
#include <psapi.h>
#include <string.h>

#include "os/windows.h"

namespace hummock::os {
namespace {

using base::Line;

constexpr uint64_t kMiB = 1 << 20;

Line name(const char* text) {
  Line line("");
  line.text(text);
  return line;
}

// "name:   number", the number ending in one column.
void write_number(const char* text, uint64_t number, const char* unit = "") {
  log::write(name(text).right(number, 44).text(unit));
}

// GetVersionEx tells programs what they want to hear.
void write_version() {
  using Call = LONG(WINAPI*)(OSVERSIONINFOEXW*);
  OSVERSIONINFOEXW version = {};
  version.dwOSVersionInfoSize = sizeof version;
  const auto call = reinterpret_cast<Call>(
      reinterpret_cast<void*>(GetProcAddress(GetModuleHandleA("ntdll.dll"), "RtlGetVersion")));
  if (call == nullptr || call(&version) != 0) return;
  Line line("WindowsVersion: ");
  line << version.dwMajorVersion << "." << version.dwMinorVersion << "." << version.dwBuildNumber;
  line << "  ServicePack: " << static_cast<unsigned>(version.wServicePackMajor) << "."
       << static_cast<unsigned>(version.wServicePackMinor);
  line << "  Type: " << (version.wProductType == VER_NT_WORKSTATION ? "Desktop" : "Server");
  log::write(line);
}

void write_processor() {
  Line line("Processor: ");
  unsigned brand[12] = {};
  unsigned eax, ebx, ecx, edx;
  if (__get_cpuid(0x80000004, &eax, &ebx, &ecx, &edx) != 0) {
    for (unsigned i = 0; i < 3; ++i) {
      unsigned* part = brand + 4 * i;
      __get_cpuid(0x80000002 + i, &part[0], &part[1], &part[2], &part[3]);
    }
  }
  const char* text = reinterpret_cast<const char*>(brand);
  const size_t length = strnlen(text, sizeof brand);
  line.text(text, length);
  line << "; " << GetActiveProcessorCount(ALL_PROCESSOR_GROUPS) << " logical processors in "
       << static_cast<unsigned>(GetActiveProcessorGroupCount()) << " group(s); "
       << static_cast<unsigned>(8 * sizeof(void*)) << "-bit process";
  log::write(line);
}

void write_memory() {
  MEMORYSTATUSEX memory = {};
  memory.dwLength = sizeof memory;
  if (GlobalMemoryStatusEx(&memory)) {
    write_number("process virt. address available:", memory.ullAvailVirtual / kMiB, "M");
    write_number("system physical RAM total:", memory.ullTotalPhys / kMiB, "M");
    write_number("system physical RAM available:", memory.ullAvailPhys / kMiB, "M");
  }
  PERFORMANCE_INFORMATION info = {};
  info.cb = sizeof info;
  if (!GetPerformanceInfo(&info, sizeof info)) return;
  const auto mib = [&](SIZE_T pages) { return uint64_t{pages} * info.PageSize / kMiB; };
  write_number("system committed limit:", mib(info.CommitLimit), "M");
  write_number("system committed peak:", mib(info.CommitPeak), "M");
  write_number("system committed current:", mib(info.CommitTotal), "M");
  write_number("system cache current:", mib(info.SystemCache), "M");
  write_number("system handles:", info.HandleCount);
  write_number("system processes:", info.ProcessCount);
  write_number("system threads:", info.ThreadCount);
}

}  // namespace

void write_facts() {
  KeepError keep;
  write_version();
  write_processor();
  write_memory();
  write_number("system uptime minutes:", GetTickCount64() / 60000);
}

}  // namespace hummock::os
