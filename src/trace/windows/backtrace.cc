#include <windows.h>

#include "base/message.h"
#include "trace/backtrace.h"

namespace hummock::trace {

unsigned callers(void** frames, unsigned most) {
  constexpr DWORD kOwn = 3;  // callers() and two layers of checked mode
  return most == 0 ? 0 : CaptureStackBackTrace(kOwn, most, frames, nullptr);
}

// Module and offset: names need the symbols, which a debugger has.
void print_frames(void* const* frames, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (frames[i] == nullptr) continue;
    HMODULE module = nullptr;
    char name[MAX_PATH] = "?";
    const DWORD flags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
    if (GetModuleHandleExA(flags, static_cast<const char*>(frames[i]), &module)) {
      GetModuleFileNameA(module, name, sizeof name - 1);
    }
    const uintptr_t offset = reinterpret_cast<uintptr_t>(frames[i]) - reinterpret_cast<uintptr_t>(module);
    base::Line line = report_line();
    line.text("    #").dec(i).text(" ");
    base::say(line.text(name)
                  .text("+")
                  .hex(module != nullptr ? offset : 0)
                  .text(" [")
                  .pointer(frames[i])
                  .text("]"));
  }
}

base::Line report_line() {
  base::Line line;
  line.dec(GetCurrentProcessId()).text(": ");
  return line;
}

uint32_t thread_number() {
  return GetCurrentThreadId();
}

void forget_thread_number() {}

}  // namespace hummock::trace
