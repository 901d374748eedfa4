// The allocator's own calls must not show in the program's errno.
#ifndef HUMMOCK_BASE_KEEP_ERRNO_H
#define HUMMOCK_BASE_KEEP_ERRNO_H

#include <errno.h>

namespace hummock::base {

// As it was, when the scope ends.
class KeepErrno {
 public:
  KeepErrno() : saved_(errno) {}
  ~KeepErrno() { errno = saved_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  int saved_;
};

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_KEEP_ERRNO_H
