// Threads on Linux, and what the base layer asks of it.
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif
#include <time.h>
#include <unistd.h>

#include "base/keep_errno.h"
#include "base/system.h"
#include "os/linux/uncancelled.h"
#include "os/lock.h"
#include "os/sleep.h"
#include "os/thread.h"

// Weak, so that a program need not define it. The shared library finds the program's one when the
// program was linked with it (or exports its symbols), the archive at link time.
extern "C" __attribute__((weak)) const char* hummock_conf;

// Has a function called at the end of the calling thread, as C++ does for its thread_local objects: of glibc
// and others, not of all.
extern "C" __attribute__((weak)) int __cxa_thread_atexit_impl(void (*end)(void*), void* value, void* library);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

// glibc's list of open streams, and whether the process has one thread.
extern "C" __attribute__((weak)) void _IO_list_lock();
extern "C" __attribute__((weak)) void _IO_list_unlock();
extern "C" __attribute__((weak)) void _IO_list_resetlock();
extern "C" __attribute__((weak)) char __libc_single_threaded;
extern "C" __attribute__((weak)) void* __libc_stack_end;  // as the process began: the number of arguments

namespace hummock::os {

intptr_t processor_at;

// glibc registers each thread with the kernel. An emulator or an old kernel refuses; then the size is 0. A
// thread that is not registered reads 0 in cpu_id_start, which is never negative.
void find_processor() {
#if __has_include(<sys/rseq.h>)
  if (__rseq_size != 0)
    processor_at = __rseq_offset + static_cast<intptr_t>(offsetof(struct rseq, cpu_id_start));
#endif
}

namespace {

constexpr size_t kStack = 64 << 10;

// A process has 1,024 keys, and the program may have them all.
pthread_key_t exit_key;
bool has_key;
void (*exit_call)(void*);

void* run_thread(void* run) {
  reinterpret_cast<void (*)()>(run)();
  return nullptr;
}

// libc calls the ends of keys in rounds while values are set, but in so many at most: a value set after the
// last call would stay for ever. So the rounds are counted. This value brings us the next one.
constexpr unsigned kRounds = PTHREAD_DESTRUCTOR_ITERATIONS;
void* const kNextRound = &exit_key;
static_assert(kRounds < 16);

void end_round(void* value) {
  if (++thread_words.exit_rounds < kRounds) pthread_setspecific(exit_key, kNextRound);
  if (value != kNextRound) exit_call(value);
}

}  // namespace

void on_thread_exit(void (*end)(void*)) {
  exit_call = end;
  has_key = pthread_key_create(&exit_key, end_round) == 0;
}

bool set_exit_value(void* value) {
  const base::KeepErrno keep;
  bool set = has_key && pthread_setspecific(exit_key, value) == 0;
  // What was registered cannot be taken back: ends_thread() tells whose it is.
  if (!set && value == nullptr) set = true;
  if (!set && &__cxa_thread_atexit_impl != nullptr) {
    set = __cxa_thread_atexit_impl(exit_call, value, &__dso_handle) == 0;
  }
  return set;
}

bool exit_repeats() {
  return has_key && thread_words.exit_rounds < kRounds;
}

namespace {

ForkHandler* fork_handler;  // atomic, relaxed
// Both guarded by the list of streams. Atomic, relaxed: ThreadSanitizer does not see libc's lock.
unsigned streams_taken;  // how often the thread that forks has the list
bool prepared;           // the fork under way called the handler

bool take_prepared() {
  return __atomic_exchange_n(&prepared, false, __ATOMIC_RELAXED);
}

void prepare() {
  ForkHandler* handler = __atomic_load_n(&fork_handler, __ATOMIC_RELAXED);
  if (handler == nullptr) return;
  take_streams();
  handler(ForkStep::before);
  __atomic_store_n(&prepared, true, __ATOMIC_RELAXED);
}

void parent() {
  if (!take_prepared()) return;
  fork_handler(ForkStep::in_parent);
  release_streams();
}

void child() {
  if (!take_prepared()) return;
  fork_handler(ForkStep::in_child);
  reset_streams();
}

// Before there are threads. The first malloc would be too late: it may come from a thread that holds the list
// of streams, for which a fork waits that holds the lock of pthread_atfork. After those of spaces and
// proxies: what is registered last runs first before a fork.
__attribute__((constructor(102))) void register_handlers() {
  pthread_atfork(prepare, parent, child);
}

}  // namespace

// A thread that flushes all streams holds their list, and waits for a stream whose holder may wait in malloc.
// fork() takes the list when our handlers are through: so it is taken here first, before any lock of ours.
// It is recursive: the parent's fork() takes and releases it once more inside ours. It makes the list anew in
// the child of a process that has several threads; with one thread nobody has the list, and it is left alone.
void take_streams() {
  if (&_IO_list_lock == nullptr || &_IO_list_unlock == nullptr || &_IO_list_resetlock == nullptr) return;
  if (&__libc_single_threaded != nullptr && __libc_single_threaded != 0) return;
  _IO_list_lock();
  __atomic_fetch_add(&streams_taken, 1, __ATOMIC_RELAXED);
}

void release_streams() {
  if (__atomic_load_n(&streams_taken, __ATOMIC_RELAXED) == 0) return;
  // First: the next fork may begin as soon as the list is released.
  __atomic_fetch_sub(&streams_taken, 1, __ATOMIC_RELAXED);
  _IO_list_unlock();
}

void reset_streams() {
  if (__atomic_exchange_n(&streams_taken, 0, __ATOMIC_RELAXED) != 0) _IO_list_resetlock();
}

void on_fork(ForkHandler* handler) {
  __atomic_store_n(&fork_handler, handler, __ATOMIC_RELAXED);
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
  const base::KeepErrno keep;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(value), nullptr, nullptr, 0);
}

void wake_waiter(const uintptr_t* word) {
  const base::KeepErrno keep;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void sleep_ms(unsigned ms) {
  Uncancelled uncancelled;
  const timespec pause = {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1'000'000};
  nanosleep(&pause, nullptr);
}

}  // namespace hummock::os

namespace hummock::base {

namespace {
bool no_standard_error;  // written at start
}

bool write_text(int fd, const char* text, size_t length) {
  return !(fd == 2 && no_standard_error) && os::write_all(fd, text, length);
}

void note_standard_error() {
  const base::KeepErrno keep;
  no_standard_error = fcntl(2, F_GETFD) < 0;
}

void stop() {
  abort();
}

void stop_here() {
  signal(SIGABRT, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGABRT);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(SIGABRT);
  _exit(128 + SIGABRT);
}

void leave(int status) {
  _exit(status);
}

// In .preinit_array glibc has not begun: then what the kernel put behind the arguments.
const char* const* environment() {
  if (environ != nullptr || &__libc_stack_end == nullptr || __libc_stack_end == nullptr) return environ;
  const auto* words = static_cast<const uintptr_t*>(__libc_stack_end);
  const auto* arguments = static_cast<const char* const*>(__libc_stack_end) + 1;
  constexpr uintptr_t kMost = 1 << 21;  // of arguments, as in 2 MiB of pointers and strings
  return words[0] < kMost && arguments[words[0]] == nullptr ? arguments + words[0] + 1 : nullptr;
}

const char* program_conf() {
  return &hummock_conf != nullptr ? hummock_conf : nullptr;
}

const char* program_conf_name() {
  return "hummock_conf";
}

}  // namespace hummock::base
