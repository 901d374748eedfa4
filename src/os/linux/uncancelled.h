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

// A pipe or socket that nobody reads any more does not end the program, nor does a file that would exceed
// RLIMIT_FSIZE: the signal comes to the thread that writes, which keeps it back and takes it, unless one was
// waiting for it before.
class NoFileSignals {
 public:
  explicit NoFileSignals(bool pipes = true);  // false: of the two only the file's size can be the cause
  ~NoFileSignals();
  NoFileSignals(const NoFileSignals&) = delete;
  NoFileSignals& operator=(const NoFileSignals&) = delete;

  void note_failure();  // a write failed, as errno says

 private:
  sigset_t mask_before_, waited_before_;
  bool changed_;  // the mask
};

// ftruncate, with both of the above: three system calls, and one more where it fails.
int set_file_length(int fd, size_t size);
// Writes all of it if it can, with both of the above; false and *error, if wanted, when it cannot. Keeps
// errno.
bool write_all(int fd, const char* bytes, size_t length, int* error = nullptr);

}  // namespace hummock::os

#endif  // HUMMOCK_OS_LINUX_UNCANCELLED_H
