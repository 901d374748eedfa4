// Figures as JSON; docs/figures.schema.json says what stands where. The command line tool writes the same.
#ifndef HUMMOCK_OBSERVE_JSON_H
#define HUMMOCK_OBSERVE_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "hummock/page.h"

namespace hummock::observe {

inline constexpr unsigned kJsonVersion = 1;

// Rows that say nothing are left out: classes without slabs.
template <class Row>
bool is_used(const Row&) {
  return true;
}
inline bool is_used(const hummock_page_class_t& row) {
  return row.slabs != 0;
}

// Whose figures they are, and what is not among them.
struct Described {
  const hummock_figures_t* figures;
  uint32_t pid;
  const char* program;
  const char* cgroup;  // null: not known
  const char* library;
  uint64_t age_ms;    // since they were taken
  uint64_t resident;  // bytes of the process in memory; 0: not known
};

// Writes one object without an end of line. Writes at most `room` bytes, the last of them NUL, and returns
// the length without it. Takes no memory. Pass null and a room of 0 to ask for the length.
size_t write_json(const Described& what, char* out, size_t room);

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_JSON_H
