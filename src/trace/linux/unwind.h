// How to get from a frame to its caller's, read from .eh_frame. For x86-64.
#ifndef HUMMOCK_TRACE_LINUX_UNWIND_H
#define HUMMOCK_TRACE_LINUX_UNWIND_H

#include <stdint.h>

#include "trace/linux/modules.h"

namespace hummock::trace {

// The caller's stack pointer is the "frame address"; its return address stands just below.
struct Rule {
  enum Kind : uint8_t {
    from_sp,         // frame address = rsp + 8 × offset
    from_bp,         // frame address = rbp + 8 × offset
    through_bp,      // frame address = *(rbp - 8 × offset), rbp was saved where it points: a realigned stack
    without_offset,  // `offset` is a Special
  };
  enum Special : uint16_t {
    end = 1,        // no caller, a signal's frame, or a rule we do not follow
    frame_pointer,  // nothing is known: rbp may lead on
  };
  Kind kind;
  uint16_t offset;
  uint16_t saved_bp;  // words below the frame address where the caller's rbp is kept; 0: it is still in rbp
};

inline constexpr unsigned kRuleOffsetBits = 16, kRuleSavedBits = 13;

// The rule for the instruction at `address` of the module.
Rule read_rule(const Module& module, uintptr_t address);

}  // namespace hummock::trace

#endif  // HUMMOCK_TRACE_LINUX_UNWIND_H
