// The system calls on Windows, in a table so that tests can make any of them fail, or succeed.
#ifndef HUMMOCK_OS_WINDOWS_CALLS_H
#define HUMMOCK_OS_WINDOWS_CALLS_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::os {

// Each has the meaning of the call it is named after; types, protections and errors are Windows's own
// numbers, so that this header needs no <windows.h>.
struct Calls {
  void* (*virtual_alloc)(void* at, size_t size, uint32_t type, uint32_t protection);
  bool (*virtual_free)(void* at, size_t size, uint32_t type);
  size_t (*large_page_minimum)();
  // The calls by which a process gets large pages: its token, the privilege's number, granting it.
  bool (*open_process_token)(void** token);
  bool (*lookup_lock_memory)(void* luid);
  bool (*adjust_privilege)(void* token, const void* luid);  // true with error 1300: not granted
  uint32_t (*last_error)();
  void (*set_last_error)(uint32_t error);
};
extern Calls calls;

// The program's own calls must not find our errors.
class KeepError {
 public:
  KeepError() : saved_(calls.last_error()) {}
  ~KeepError() { calls.set_last_error(saved_); }
  KeepError(const KeepError&) = delete;
  KeepError& operator=(const KeepError&) = delete;

 private:
  uint32_t saved_;
};

}  // namespace hummock::os

#endif  // HUMMOCK_OS_WINDOWS_CALLS_H
