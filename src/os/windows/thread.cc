// Threads on Windows: their word, their ends, and how they wait for each other.
#include <windows.h>

#include "base/message.h"
#include "os/lock.h"
#include "os/thread.h"
#include "os/windows/extra.h"

namespace hummock::os {

uintptr_t slot_offset;

namespace {

constexpr DWORD kSlotsInBlock = 64;
constexpr uintptr_t kFirstSlot = sizeof(void*) == 8 ? 0x1480 : 0x0e10;

DWORD slot_index = TLS_OUT_OF_INDEXES;  // atomic: release before slot_offset
DWORD exit_index = FLS_OUT_OF_INDEXES;
void (*exit_call)(void*);

using WaitCall = BOOL(WINAPI*)(volatile void*, void*, SIZE_T, DWORD);
using WakeCall = void(WINAPI*)(void*);
using ShutdownCall = BOOLEAN(WINAPI*)();

// Since Windows 8; before, waiting threads look again each millisecond. Found once, before there is
// anything to wait for; written by start_threads alone.
WaitCall wait_call;
WakeCall wake_call;
ShutdownCall shutdown_call;

template <class Call>
void find(Call* out, const char* module, const char* name) {
  HMODULE handle = GetModuleHandleA(module);
  if (handle == nullptr) return;
  *out = reinterpret_cast<Call>(reinterpret_cast<void*>(GetProcAddress(handle, name)));
}

bool is_shut_down() {
  return shutdown_call != nullptr && shutdown_call();
}

bool leaving;  // the library is unloaded: the calls are made for all threads, by this one

// At the process's end nobody needs what the last thread has, and locks may be held for ever.
void WINAPI end_of_thread(void* value) {
  if (value != nullptr && !is_shut_down()) exit_call(value);
}

HMODULE own_module() {
  HMODULE module = nullptr;
  const void* here = reinterpret_cast<const void*>(&own_module);
  GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, static_cast<const char*>(here), &module);
  return module;
}

// The library is not unloaded while a thread of its own runs in it.
DWORD WINAPI run_thread(void* run) {
  HMODULE module = own_module();
  reinterpret_cast<void (*)()>(run)();
  // One hold is ours, the other start_thread's.
  FreeLibrary(module);
  FreeLibraryAndExitThread(module, 0);
}

}  // namespace

uintptr_t read_far_slot() {
  const DWORD index = __atomic_load_n(&slot_index, __ATOMIC_ACQUIRE);
  if (index == TLS_OUT_OF_INDEXES) return 0;
  KeepError keep;
  return reinterpret_cast<uintptr_t>(TlsGetValue(index));
}

void write_slot(uintptr_t value) {
  KeepError keep;
  if (!TlsSetValue(slot_index, reinterpret_cast<void*>(value))) {
    base::die(base::Line() << "no memory for a thread's slot");
  }
}

void on_thread_exit(void (*end)(void*)) {
  KeepError keep;
  find(&wait_call, "kernelbase.dll", "WaitOnAddress");
  find(&wake_call, "kernelbase.dll", "WakeByAddressSingle");
  find(&shutdown_call, "ntdll.dll", "RtlDllShutdownInProgress");
  exit_call = end;
  exit_index = FlsAlloc(end_of_thread);  // when there is none, the DLL's entry point ends threads
  const DWORD index = TlsAlloc();
  if (index == TLS_OUT_OF_INDEXES) base::die(base::Line() << "the process has no TLS index left");
  __atomic_store_n(&slot_index, index, __ATOMIC_RELEASE);
  if (index < kSlotsInBlock) {
    __atomic_store_n(&slot_offset, kFirstSlot + index * sizeof(void*), __ATOMIC_RELAXED);
  }
}

// Without it the DLL's entry point tells.
bool set_exit_value(void* value) {
  KeepError keep;
  if (exit_index != FLS_OUT_OF_INDEXES) FlsSetValue(exit_index, value);
  return true;
}

// Values belong to fibers, and any thread may delete another's.
bool ends_thread(bool own) {
  return own || leaving;
}

void leave_threads() {
  leaving = true;
  if (exit_index != FLS_OUT_OF_INDEXES) FlsFree(exit_index);
  exit_index = FLS_OUT_OF_INDEXES;
  __atomic_store_n(&slot_offset, 0, __ATOMIC_RELAXED);
  const DWORD index = __atomic_exchange_n(&slot_index, TLS_OUT_OF_INDEXES, __ATOMIC_ACQ_REL);
  if (index != TLS_OUT_OF_INDEXES) TlsFree(index);
}

void on_fork(ForkHandler*) {}

bool start_thread(void (*run)()) {
  KeepError keep;
  constexpr SIZE_T kStack = 64 << 10;
  HMODULE module = own_module();
  HANDLE thread = CreateThread(nullptr, kStack, run_thread, reinterpret_cast<void*>(run),
                               STACK_SIZE_PARAM_IS_A_RESERVATION, nullptr);
  if (thread == nullptr) {
    FreeLibrary(module);
    return false;
  }
  CloseHandle(thread);
  return true;
}

void sleep_ms(unsigned ms) {
  Sleep(ms);
}

bool watch_pressure() {
  return false;
}
bool sleep_or_pressure(unsigned ms) {
  Sleep(ms);
  return false;
}

// At the process's end the system has stopped every other thread where it was: a lock that is held now
// stays so, and what it guards may be half changed. As the system's own locks do.
void end_if_shut_down() {
  if (is_shut_down()) TerminateProcess(GetCurrentProcess(), 0xc000004b);
}

void wait_while(const uintptr_t* word, uintptr_t value) {
  KeepError keep;
  end_if_shut_down();
  if (wait_call != nullptr && wake_call != nullptr) {
    wait_call(const_cast<uintptr_t*>(word), &value, sizeof value, INFINITE);
  } else {
    Sleep(1);
  }
}

void wake_waiter(const uintptr_t* word) {
  KeepError keep;
  if (wake_call != nullptr) wake_call(const_cast<uintptr_t*>(word));
}

}  // namespace hummock::os
