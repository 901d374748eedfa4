// Calls of the allocator's own that wait for a file, as the rest of the program sees them: not at all.
#ifndef HUMMOCK_OS_LINUX_UNCANCELLED_H
#define HUMMOCK_OS_LINUX_UNCANCELLED_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

namespace hummock::os {

// A thread that is to be cancelled is not meanwhile: it would leave descriptors open and work half done.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_;
};

// A pipe or socket that nobody reads any more does not end the program: the signal for it comes to the
// thread that writes, which keeps it back and takes it, unless one was waiting for it before.
class NoPipeSignal {
 public:
  NoPipeSignal();
  ~NoPipeSignal();
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

  void note_broken() { broken_ = true; }  // a write failed with EPIPE

 private:
  sigset_t mask_before_;
  bool waited_before_;
  bool broken_ = false;
};

// Writes all of it if it can, with both of the above; false when it cannot. Keeps errno.
bool write_all(int fd, const char* bytes, size_t length);

}  // namespace hummock::os

#endif  // HUMMOCK_OS_LINUX_UNCANCELLED_H
