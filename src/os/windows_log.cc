// The region log on Windows: a file that each line goes to at once.
#include <windows.h>

#include <string.h>

#include "base/system.h"
#include "hummock/hummock.h"
#include "os/windows.h"

namespace hummock::os::log {
namespace {

constexpr size_t kPath = 1024;

HANDLE file = INVALID_HANDLE_VALUE;  // atomic: release by open()
uint64_t start;                      // ticks; written before `file`
uint64_t frequency;                  // of ticks, a second; likewise
size_t total;                        // bytes in regions; atomic, relaxed

// What was said before the log was open: whole lines. Guarded by nothing: the library starts in one thread.
char early[2048];
size_t early_length;

HANDLE current() {
  return __atomic_load_n(&file, __ATOMIC_ACQUIRE);
}

// In one call, so that lines of several threads, and processes, do not mix.
void append(HANDLE to, const char* text, size_t length) {
  DWORD done;
  WriteFile(to, text, static_cast<DWORD>(length), &done, nullptr);
}

HANDLE create(const char* directory, const char* name) {
  char path[kPath];
  const size_t length = strlen(directory);
  if (length + strlen(name) >= sizeof path) return INVALID_HANDLE_VALUE;
  memcpy(path, directory, length);
  memcpy(path + length, name, strlen(name) + 1);
  return CreateFileA(path, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                     OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr);
}

HANDLE create_somewhere() {
  const base::Line line = base::Line("") << "malloc_" << static_cast<unsigned>(GetCurrentProcessId()) << ".log";
  char name[64] = {};
  memcpy(name, line.data(), line.size());
  HANDLE handle = create("", name);
  if (handle != INVALID_HANDLE_VALUE) return handle;
  char directory[kPath];
  const DWORD length = GetTempPathA(sizeof directory, directory);
  return length == 0 || length >= sizeof directory ? handle : create(directory, name);
}

void name_of(void* module, char* out, DWORD room) {
  const DWORD length = GetModuleFileNameA(static_cast<HMODULE>(module), out, room);
  if (length == 0 || length >= room) strcpy(out, "?");
}

// `number` of 1/1000 with two or three decimals, ending before column `to`.
void fraction(base::Line& line, uint64_t thousandths, unsigned decimals, size_t to) {
  const uint64_t rest = thousandths % 1000;
  line.right(thousandths / 1000, to - decimals - 1).text(".");
  const char digits[] = {static_cast<char>('0' + rest / 100), static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  line.text(digits, decimals);
}

}  // namespace

uint64_t ticks() {
  LARGE_INTEGER now;
  QueryPerformanceCounter(&now);
  return static_cast<uint64_t>(now.QuadPart);
}

bool is_open() {
  return current() != INVALID_HANDLE_VALUE;
}

void open(void* module) {
  KeepError keep;
  LARGE_INTEGER rate;
  QueryPerformanceFrequency(&rate);
  frequency = static_cast<uint64_t>(rate.QuadPart);
  start = ticks();
  HANDLE handle = create_somewhere();
  if (handle == INVALID_HANDLE_VALUE) return;
  __atomic_store_n(&file, handle, __ATOMIC_RELEASE);
  char path[kPath];
  base::Line line("Hummock ");
  line << HUMMOCK_VERSION_MAJOR << "." << HUMMOCK_VERSION_MINOR << "." << HUMMOCK_VERSION_PATCH;
  line << " is the memory allocator of ";
  name_of(nullptr, path, sizeof path);
  line.text(path).text(" (process ").dec(GetCurrentProcessId()).text(")");
  name_of(module, path, sizeof path);
  write(module == nullptr ? line : line.text(" from ").text(path));
  if (early_length != 0) append(handle, early, early_length);
}

void close() {
  KeepError keep;
  HANDLE handle = __atomic_exchange_n(&file, INVALID_HANDLE_VALUE, __ATOMIC_ACQ_REL);
  if (handle != INVALID_HANDLE_VALUE) CloseHandle(handle);
}

void write(const base::Line& line) {
  HANDLE handle = current();
  if (handle == INVALID_HANDLE_VALUE) return;
  KeepError keep;
  base::Line whole("");
  whole.text(line.data(), line.size()).text("\r");
  append(handle, whole.data(), whole.size() + 1);
}

void write_said(const char* text, size_t length) {
  if (length == 0) return;
  if (is_open()) {
    base::Line line("");
    return write(line.text(text, length - 1));
  }
  if (length + 1 > sizeof early - early_length) return;
  memcpy(early + early_length, text, length - 1);
  memcpy(early + early_length + length - 1, "\r\n", 2);
  early_length += length + 1;
}

void event(uint64_t since, size_t size, const void* at, const char* what, ptrdiff_t change,
           const base::Line* reason) {
  const size_t now_total =
      __atomic_add_fetch(&total, static_cast<size_t>(change), __ATOMIC_RELAXED);  // also while there is no log
  if (!is_open()) return;
  const uint64_t now = ticks();
  base::Line line("");
  fraction(line, (now > start ? now - start : 0) * 1000 / frequency, 3, 12);
  line.text("s:");
  fraction(line, (now > since ? now - since : 0) * 1000000 / frequency, 2, 21);
  line.text("ms ").right(size / 1024, 32).text("k");
  if (at != nullptr) line.text(" at:").pointer(at);
  line.text(" ").text(what).text(" (").right(now_total >> 20, line.size() + 5).text("M)");
  if (reason != nullptr) line.text(" ").text(reason->data(), reason->size());
  write(line);
}

}  // namespace hummock::os::log

namespace hummock::os {
namespace {

const char* conf_text;

}  // namespace

void set_program_conf(const char* text) {
  conf_text = text;
}

}  // namespace hummock::os

namespace hummock::base {

// A program with windows has no standard error: what is said goes to the log, too.
void write_text(int fd, const char* text, size_t length) {
  const DWORD error = GetLastError();
  HANDLE to = GetStdHandle(fd == 1 ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE);
  DWORD done;
  if (to != nullptr && to != INVALID_HANDLE_VALUE) {
    WriteFile(to, text, static_cast<DWORD>(length), &done, nullptr);
  }
  if (fd == 2) os::log::write_said(text, length);
  SetLastError(error);
}

// As a fault that nobody continues: the program's own crash handler, or the system's, tells of it.
void stop() {
  os::log::write(Line("") << "the program, or what it loaded, misused its memory; the allocator found it, and stops");
  constexpr DWORD kHeapCorruption = 0xc0000374;
  RaiseException(kHeapCorruption, EXCEPTION_NONCONTINUABLE, 0, nullptr);
  TerminateProcess(GetCurrentProcess(), kHeapCorruption);
  __builtin_unreachable();
}

// The variables that matter, taken once, in one thread.
const char* const* environment() {
  static const char* found[65];
  size_t count = 0;
  const char* block = GetEnvironmentStringsA();
  if (block == nullptr) return nullptr;
  for (const char* entry = block; *entry != '\0'; entry += strlen(entry) + 1) {
    if (strncmp(entry, "HUMMOCK_", 8) == 0 && count < 64) found[count++] = entry;
  }
  found[count] = nullptr;
  return found;
}

const char* program_conf() {
  return os::conf_text;
}

}  // namespace hummock::base
