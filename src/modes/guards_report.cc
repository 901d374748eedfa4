// Reports on guarded blocks: a line, and the stacks of the block's life.
#include <string.h>

#include <initializer_list>

#include "base/system.h"
#include "modes/canary.h"
#include "modes/guarded_slot.h"
#include "modes/guards.h"
#include "os/os.h"
#include "trace/backtrace.h"

namespace hummock::modes::guards {
namespace {

using base::Line;

unsigned char* before(const SlabHeader* header) {
  return reinterpret_cast<unsigned char*>(header->start) - size_before(header);
}

bool is_freed(const Slot* slot) {
  return kind_of(slot->header) != Kind::guarded;
}

void say_block(Line& line, const Slot* slot) {
  const SlabHeader* header = slot->header;
  line << (is_freed(slot) ? "a freed block of " : "a block of ") << header->bytes << " bytes at "
       << static_cast<const void*>(header->start);
}

// Bytes between the address and the slot's block; 0: inside.
size_t distance(const Slot* slot, const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const auto start = reinterpret_cast<uintptr_t>(slot->header->start);
  const uintptr_t end = start + slot->header->bytes;
  if (address < start) return start - address;
  return address < end ? 0 : address - end + 1;
}

// The nearest block around an address; null if there was none yet.
Slot* nearest(const void* p) {
  if (slot_at(p) == nullptr) return nullptr;
  Slot* best = nullptr;
  for (Slot* slot : {slot_at(p), next_to(p, -1), next_to(p, 1)}) {
    if (slot == nullptr || slot->header == nullptr || slot->header->start == nullptr) continue;
    if (best == nullptr || distance(slot, p) < distance(best, p)) best = slot;
  }
  return best;
}

// "at byte 3 of a block of 8 bytes": from 8 on it stands behind the block.
void say_where(Line& line, const Slot* slot, const void* p) {
  const ptrdiff_t byte = static_cast<const char*>(p) - slot->header->start;
  if (byte >= 0) {
    line << "at byte " << byte << " of ";
  } else {
    line << -byte << (byte == -1 ? " byte before " : " bytes before ");
  }
  say_block(line, slot);
}

void say_life(const Slot* slot) {
  say_event("allocated", {relaxed(slot->allocated_by), relaxed(slot->allocated_in)});
  const uint32_t freed_in = relaxed(slot->freed_in);
  if (is_freed(slot) && freed_in != 0) say_event("freed", {relaxed(slot->freed_by), freed_in});
}

[[noreturn]] void report(const Line& line, const Slot* slot) {
  base::say(line);
  say_life(slot);
  end_report();
}

const char* name_of(trace::Fault::Access access) {
  if (access == trace::Fault::Access::unknown) return "access to ";
  return access == trace::Fault::Access::write ? "write to " : "read of ";
}

}  // namespace

void set_canaries(const SlabHeader* header) {
  memset(before(header), kCanary, size_before(header));
  memset(header->start + header->bytes, kCanary, size_behind(header));
}

void check_canaries(const char* call, const Slot* slot) {
  const SlabHeader* header = slot->header;
  const size_t front = size_before(header);
  size_t at = first_other(before(header), kCanary, front);
  const void* wrong = before(header) + at;
  if (at == front) {
    const auto* end = reinterpret_cast<const unsigned char*>(header->start) + header->bytes;
    at = first_other(end, kCanary, size_behind(header));
    if (at == size_behind(header)) return;
    wrong = end + at;
  }
  Line line = trace::report_line();
  line << call << "(" << static_cast<const void*>(header->start) << "): something was written ";
  say_where(line, slot, wrong);
  report(line, slot);
}

void double_free(const char* call, const Slot* slot) {
  Line line = trace::report_line();
  line << call << "(" << static_cast<const void*>(slot->header->start) << "): double free: the block of "
       << slot->header->bytes << " bytes is free already";
  base::offer(line);
  report(line, slot);
}

void tell_misuse(const char* call, const void* p, slab::End end) {
  const Slot* slot = nearest(p);
  if (slot == nullptr) return;
  if (p == slot->header->start && is_freed(slot) && end == base::refuse) double_free(call, slot);
  Line line = trace::report_line();
  line << call << "(" << p << "): no live block starts there; it points ";
  say_where(line, slot, p);
  if (end == base::refuse) base::offer(line);
  report(line, slot);
}

void tell_fault(const trace::Fault& fault) {
  const Slot* slot = nearest(fault.address);
  if (slot == nullptr) return;
  Line line = trace::report_line();
  line << name_of(fault.access) << fault.address << ": ";
  say_where(line, slot, fault.address);
  base::say(line);
  say_life(slot);
  void* frames[kMostFrames];
  const unsigned count = trace::callers_at(fault, frames, kMostFrames);
  base::say(trace::report_line() << "  this access by thread " << trace::thread_number()
                                 << (count != 0 ? ":" : ""));
  trace::print_frames(frames, count);
  base::stop();
}

}  // namespace hummock::modes::guards
