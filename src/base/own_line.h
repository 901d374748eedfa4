// A variable with cache lines of its own.
#ifndef HUMMOCK_BASE_OWN_LINE_H
#define HUMMOCK_BASE_OWN_LINE_H

namespace hummock::base {

// For what every malloc and free reads: if another thread writes to a neighbour in the same line, each reader
// waits for that line. Two lines, as processors fetch them in pairs.
template <class T>
struct alignas(128) OwnLine {
  T value;
};

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_OWN_LINE_H
