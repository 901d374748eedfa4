// Threads on Linux, and what the base layer asks of it.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/system.h"
#include "os/lock.h"
#include "os/thread.h"

// Weak, so that a program need not define it. The shared library finds the program's one when the
// program was linked with it (or exports its symbols), the archive at link time.
extern "C" __attribute__((weak)) const char* hummock_conf;

namespace hummock::os {
namespace {

constexpr size_t kStack = 64 << 10;

pthread_key_t exit_key;

void* run_thread(void* run) {
  reinterpret_cast<void (*)()>(run)();
  return nullptr;
}

}  // namespace

void on_thread_exit(void (*end)(void*)) {
  pthread_key_create(&exit_key, end);
}

void set_exit_value(void* value) {
  pthread_setspecific(exit_key, value);
}

void on_fork(void (*before)(), void (*in_parent)(), void (*in_child)()) {
  pthread_atfork(before, in_parent, in_child);
}

bool start_thread(void (*run)()) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, run_thread, reinterpret_cast<void*>(run)) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// The futex is the word's lower half, which is the first on the machines we know.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

void wait_while(const uintptr_t* word, uintptr_t value) {
  const int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(value), nullptr, nullptr, 0);
  errno = saved;
}

void wake_waiter(const uintptr_t* word) {
  const int saved = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = saved;
}

void sleep_ms(unsigned ms) {
  const timespec pause = {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace hummock::os

namespace hummock::base {

void write_text(int fd, const char* text, size_t length) {
  const int saved = errno;
  while (length != 0) {
    const ssize_t done = write(fd, text, length);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) break;
    text += done;
    length -= static_cast<size_t>(done);
  }
  errno = saved;
}

void stop() {
  abort();
}

void leave(int status) {
  _exit(status);
}

const char* const* environment() {
  return environ;
}

const char* program_conf() {
  return &hummock_conf != nullptr ? hummock_conf : nullptr;
}

const char* program_conf_name() {
  return "hummock_conf";
}

}  // namespace hummock::base
