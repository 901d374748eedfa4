// What checked mode says of misuse.
#include "base/message.h"
#include "heap/diagnose.h"
#include "modes/checked_record.h"
#include "os/os.h"
#include "trace/backtrace.h"

namespace hummock::modes::checked {
namespace {

using base::Line;
using trace::report_line;

// The line and the stack of this very call; abort.
[[noreturn]] void report(const Line& line) {
  base::say(line);
  end_report();
}

// The same with the stacks of the block's life.
[[noreturn]] void report(const Line& line, Record* record) {
  base::say(line);
  say_event("allocated", record->allocated);
  if (state_of(record) == State::freed) say_event("freed", record->freed);
  end_report();
}

// "call(block): the block "
Line line_of_block(const char* call, Record* record) {
  Line line = report_line();
  line << call << "(" << static_cast<const void*>(record->user()) << "): ";
  return line;
}

// Another thread may be freeing the block at this moment, and its stack is worth a short wait. It may also be
// this thread, interrupted by a signal: then the wait would never end, so it has a limit.
void await_freed(const Record* record) {
  for (int i = 0; i < 5000 && state_of(record) == State::freeing; ++i) os::sleep_ms(1);
}

// Reports what the default mode says of pointers that are not blocks.
[[noreturn]] void say_bad_pointer(const Line& line) {
  constexpr size_t kName = sizeof("hummock: ") - 1;
  report(report_line().text(line.data() + kName, line.size() - kName));
}

}  // namespace

void say_not_block(const char* call, const void* p) {
  Record* record = raw_block(p);
  if (record == nullptr) heap::bad_pointer(call, p, say_bad_pointer);
  if (!is_whole(record)) {
    report(report_line() << call << "(" << p << "): not a block, or the record before it was overwritten");
  }
  Line line = report_line();
  line << call << "(" << p << "): ";
  heap::say_inside(line, {record->user(), record->size}, p);
  report(line, record);
}

void say_no_heap(const char* call, const UserHeap* heap) {
  heap::no_such_heap(call, heap, say_bad_pointer);
}

void say_array(const char* call, Record* record) {
  report(line_of_block(call, record) << "the block is of operator new[], only delete[] may free it", record);
}

void say_not_array(const char* call, Record* record) {
  report(line_of_block(call, record) << "the block is not of operator new[]", record);
}

void say_freed(const char* call, Record* record) {
  await_freed(record);
  report(line_of_block(call, record) << "the block of " << record->size << " bytes was freed", record);
}

void say_double_free(const char* call, Record* record) {
  await_freed(record);
  report(
      line_of_block(call, record) << "double free: the block of " << record->size << " bytes is free already",
      record);
}

void say_other_heap(const char* call, Record* record) {
  report(line_of_block(call, record) << "the block is of another heap", record);
}

void say_other_size(const char* call, Record* record, size_t size) {
  report(line_of_block(call, record) << "the block was allocated with " << record->size << " bytes, not "
                                     << size,
         record);
}

void say_other_align(const char* call, Record* record, size_t align) {
  report(line_of_block(call, record) << "the block was allocated with alignment " << record->align()
                                     << ", not " << align,
         record);
}

void say_guard(const char* call, Record* record) {
  const base::Unwatched unwatched;
  const size_t before = front_size(record);
  const size_t front = first_other(front_guard(record), kGuardByte, before);
  Line line = line_of_block(call, record);
  if (front != before) {
    line << "something was written " << (before - front) << " bytes before a block of ";
  } else {
    const size_t back = first_other(back_guard(record), kGuardByte, record->after);
    line << "something was written at byte " << (record->size + back) << " of a block of ";
  }
  report(line << record->size << " bytes", record);
}

void say_written(const char* call, Record* record, size_t at) {
  report(report_line() << call << ": byte " << at << " of a freed block of " << record->size << " bytes at "
                       << static_cast<const void*>(record->user()) << " was written after the free",
         record);
}

void say_overwritten(const char* call, const Record* record) {
  report(report_line() << call << ": the record of a block at " << static_cast<const void*>(record)
                       << " was overwritten");
}

}  // namespace hummock::modes::checked
