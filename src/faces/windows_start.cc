// What a DLL does when it is loaded, when a thread ends, and when it is unloaded or the process ends.
#include "faces/windows_start.h"

#include <windows.h>

#include <string.h>
#include <wchar.h>

#include "base/options.h"
#include "faces/windows_crt.h"
#include "heap/attach.h"
#include "heap/background.h"
#include "modes/checked.h"
#include "observe/log_summary.h"
#include "observe/print.h"
#include "observe/stats.h"
#include "os/region_log.h"
#include "os/windows/extra.h"
#include "pages/backing.h"
#include "pages/pages.h"

namespace hummock::faces {
namespace {

using base::Line;

size_t flushes;        // atomic, relaxed: figures
size_t flushed_bytes;  // likewise

// Options stand in a file beside the DLL, of its name but with .conf at its end: a game's players have no
// use for environment variables, which go over it. An option a line; what follows a # is a remark.
constexpr size_t kConfRoom = 4096;
char conf[2 * kConfRoom + 64];

size_t read_conf(HMODULE module, char* out, size_t room) {
  wchar_t path[MAX_PATH + 8];
  const DWORD length = GetModuleFileNameW(module, path, MAX_PATH);
  if (length == 0 || length >= MAX_PATH) return 0;
  wchar_t* end = wcsrchr(path, L'.');
  if (end == nullptr || wcspbrk(end, L"\\/") != nullptr) end = path + length;
  memcpy(end, L".conf", sizeof L".conf");
  HANDLE file = CreateFileW(path, GENERIC_READ, FILE_SHARE_READ, nullptr, OPEN_EXISTING, 0, nullptr);
  if (file == INVALID_HANDLE_VALUE) return 0;
  DWORD got = 0;
  if (!ReadFile(file, out, static_cast<DWORD>(room), &got, nullptr)) got = 0;
  CloseHandle(file);
  return got;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

// As options are written elsewhere: commas between, no remarks. `nolog` alone is understood. Blanks inside an
// option stay: a path may have them.
void append_conf(const char* text, size_t length) {
  constexpr char kMark[] = {'\xef', '\xbb', '\xbf'};  // some editors begin a file in UTF-8 with it
  if (length >= sizeof kMark && memcmp(text, kMark, sizeof kMark) == 0)
    text += sizeof kMark, length -= sizeof kMark;
  char* out = conf + strlen(conf);
  char* entry = out;
  bool remark = false;
  for (size_t i = 0; i <= length; ++i) {
    const char c = i < length ? text[i] : '\n';
    const bool ends = c == '\n' || c == '\r' || c == ',';
    remark = c != '\n' && (remark || c == '#');
    if (remark || (out == entry && is_blank(c))) continue;
    if (!ends) {
      *out++ = c;
      continue;
    }
    while (out != entry && is_blank(out[-1])) --out;
    *out = '\0';
    if (strcmp(entry, "nolog") == 0) strcpy(entry, "log:none");
    out = entry + strlen(entry);
    *out++ = ',';
    entry = out;
  }
  *out = '\0';
}

void read_options(HMODULE module) {
  static char text[kConfRoom];
  strcpy(conf, HUMMOCK_DEFAULT_CONF ",");
  append_conf(text, read_conf(module, text, sizeof text));
  os::set_program_conf(conf);
}

// Takes no lock that a stopped thread might hold for ever.
void tell_at_end(bool process_ends) {
  if (process_ends && heap::is_locked()) {
    os::log_note("summary", Line("") << "none: a thread was stopped while it was inside the allocator");
    return;
  }
  if (!process_ends) os::log_note("unloaded", Line("") << "the program gives the allocator up");
  modes::checked::check_all();
  if (options::values.stats != nullptr) observe::print(2);
  observe::log_summary();
  Line line("");
  line << flushes << ", gave back ";
  os::log_note("summary flush requests", line.bytes(flushed_bytes));
}

// What is in use stays where it is. When nothing is, nothing of the library stays.
void unload() {
  heap::end_thread();
  os::leave_threads();
  tell_at_end(false);
  hummock_stats_t stats = {};
  stats.size = sizeof stats;
  observe::collect(&stats);
  if (stats.live == 0) pages::unmap_all();
  os::close_log();
}

void start(HMODULE module) {
  read_options(module);
  heap::initialise();
  if (options::values.verbose) observe::print_options();
  os::log_note("active", Line("") << HUMMOCK_ACTIVE);
  heap::start_background();
#ifdef HUMMOCK_SERVES_RUNTIMES
  serve_runtimes();
#endif
}

}  // namespace

void enable_large_pages() {
  os::ask_for_large_pages();
  pages::forgive_refusals();
  Line line("called; SeLockMemoryPrivilege: ");
  os::describe_large_pages(line);
  os::log_note("EnableHugePages", line);
  if (os::large_pages_granted() && pages::totals().pinned == 0) pages::take_reserve();
}

void note_flush(size_t bytes) {
  __atomic_fetch_add(&flushes, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&flushed_bytes, bytes, __ATOMIC_RELAXED);
}

}  // namespace hummock::faces

extern "C" BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, void* process_ends) {
  using namespace hummock;
  switch (reason) {
    case DLL_PROCESS_ATTACH:
      faces::start(module);
      break;
    case DLL_THREAD_DETACH:
      heap::end_thread();
      break;
    case DLL_PROCESS_DETACH:
      // At the process's end others may still free blocks: all stays as it is.
      process_ends != nullptr ? faces::tell_at_end(true) : faces::unload();
      break;
    default:
      break;
  }
  return TRUE;
}
