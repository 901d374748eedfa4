// What the region log and the base layer need of Windows. A descriptor is 1, 2, or a handle of the system's.
#include <windows.h>

#include <string.h>

#include "base/system.h"
#include "os/region_log.h"
#include "os/windows/extra.h"

namespace hummock::os {
namespace {

const char* conf_text;

int log_file = -1;  // written by open_append and close_log

// Messages from before the log was open, which come after its first line. The library starts in one thread.
char early[2048];
size_t early_length;

HANDLE handle_of(int fd) {
  if (fd == 1) return GetStdHandle(STD_OUTPUT_HANDLE);
  if (fd == 2) return GetStdHandle(STD_ERROR_HANDLE);
  return reinterpret_cast<HANDLE>(static_cast<intptr_t>(fd));  // handles have 32 bits that matter
}

// In one call, so that lines of several threads, and processes, do not mix.
bool put(HANDLE to, const char* text, size_t length) {
  DWORD done;
  return to != nullptr && to != INVALID_HANDLE_VALUE &&
         WriteFile(to, text, static_cast<DWORD>(length), &done, nullptr) && done == length;
}

// Lines end as Windows's own programs want it.
bool put_line(HANDLE to, const char* text, size_t length) {
  base::Line line("");
  line.text(text, length - (length != 0 && text[length - 1] == '\n')).raw("\r");
  return put(to, line.data(), line.size() + 1);
}

constexpr DWORD kShare = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

HANDLE open_file(const char* path) {
  return CreateFileA(path, FILE_APPEND_DATA, kShare, nullptr, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr);
}

// In the folder for temporary files: a game's own may be closed to its players.
HANDLE open_elsewhere(const char* path) {
  wchar_t other[MAX_PATH];
  const char* name = path + strlen(path);
  while (name != path && name[-1] != '\\' && name[-1] != '/') --name;
  const DWORD length = GetTempPathW(MAX_PATH, other);
  if (length == 0 || length >= MAX_PATH) return INVALID_HANDLE_VALUE;
  const int room = static_cast<int>(MAX_PATH - length);
  if (MultiByteToWideChar(CP_ACP, 0, name, -1, other + length, room) == 0) return INVALID_HANDLE_VALUE;
  return CreateFileW(other, FILE_APPEND_DATA, kShare, nullptr, OPEN_ALWAYS, FILE_ATTRIBUTE_NORMAL, nullptr);
}

}  // namespace

void set_program_conf(const char* text) {
  conf_text = text;
}

unsigned process_id() {
  return GetCurrentProcessId();
}

int open_append(const char* path, int* error) {
  KeepError keep;
  HANDLE handle = open_file(path);
  if (handle == INVALID_HANDLE_VALUE) {
    *error = static_cast<int>(GetLastError());
    handle = open_elsewhere(path);
  }
  log_file = handle == INVALID_HANDLE_VALUE ? -1 : static_cast<int>(reinterpret_cast<intptr_t>(handle));
  return log_file;
}

void close_log() {
  log_on = false;
  if (log_file != -1) CloseHandle(handle_of(log_file));
  log_file = -1;
}

// A folder whose name the code page cannot spell has question marks in it: then the path stays as it is.
bool absolute_path(const char* path, char* out, size_t room) {
  KeepError keep;
  const DWORD length = GetFullPathNameA(path, static_cast<DWORD>(room), out, nullptr);
  if (length != 0 && length < room && strchr(out, '?') == nullptr) return true;
  if (strlen(path) >= room) return false;
  strcpy(out, path);
  return true;
}

// Nobody else closes handles of ours.
uint64_t file_identity(int fd) {
  return fd == -1 ? 0 : 1;
}

void write_time(char* out) {
  SYSTEMTIME now;
  GetSystemTime(&now);
  const unsigned parts[] = {now.wYear, now.wMonth, now.wDay, now.wHour, now.wMinute, now.wSecond};
  for (unsigned i = 0; i < 6; ++i) {
    if (i == 3) *out++ = '-';
    if (i == 0) {
      *out++ = static_cast<char>('0' + parts[i] / 1000);
      *out++ = static_cast<char>('0' + parts[i] / 100 % 10);
    }
    *out++ = static_cast<char>('0' + parts[i] / 10 % 10);
    *out++ = static_cast<char>('0' + parts[i] % 10);
  }
  *out = '\0';
}

}  // namespace hummock::os

namespace hummock::base {

// A program with windows has no standard error: what is said goes to the log, too.
bool write_text(int fd, const char* text, size_t length) {
  using namespace os;
  KeepError keep;
  bool done = (fd == 1 || fd == 2) && put(handle_of(fd), text, length);
  if (fd == 1 || length == 0) return done;
  if (fd != 2 || log_file != -1) {
    done = put_line(handle_of(fd == 2 ? log_file : fd), text, length);
    if (early_length != 0) put(handle_of(log_file), early, early_length);
    early_length = 0;
  } else if (length + 1 <= sizeof early - early_length) {
    memcpy(early + early_length, text, length - 1);
    memcpy(early + early_length + length - 1, "\r\n", 2);
    early_length += length + 1;
    done = true;
  }
  return done;
}

// Its handle is its own, whatever the program opens.
void note_standard_error() {}

constexpr DWORD kHeapCorruption = 0xc0000374;

void stop_here() {
  TerminateProcess(GetCurrentProcess(), kHeapCorruption);
  __builtin_unreachable();
}

// As a fault that nobody continues: the program's own crash handler, or the system's, tells of it.
void stop() {
  os::log_note("misuse", Line("") << "the program, or what it loaded, misused its memory: the allocator "
                                     "found it, and stops the program");
  RaiseException(kHeapCorruption, EXCEPTION_NONCONTINUABLE, 0, nullptr);
  TerminateProcess(GetCurrentProcess(), kHeapCorruption);
  __builtin_unreachable();
}

void leave(int status) {
  if (os::log_file == -1) os::start_log();  // else nobody reads why, of a program with windows
  TerminateProcess(GetCurrentProcess(), static_cast<UINT>(status));
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

const char* program_conf_name() {
  return "the library or its .conf";
}

}  // namespace hummock::base
