// Recording: every call of a program that `hummock record` started goes into a ring of the calling thread, in
// memory that the tool reads (include/hummock/record.h). While it is on, every call takes the slow path, as
// for hooks.
#ifndef HUMMOCK_MODES_RECORDING_H
#define HUMMOCK_MODES_RECORDING_H

#include "heap/modes.h"
#include "hummock/record.h"

namespace hummock::modes::recording {

// The part of the process. Null: nothing is recorded. Written before there is a second thread.
extern hummock_record_t* part;
inline bool is_on() {
  return relaxed(part) != nullptr;
}

// Takes a part, where who started the process shares memory for that. Before the first block; not for modes
// that see every call themselves.
void start();
// After a fork, in the child: its calls are not recorded.
void in_child();

// A block was handed out, or null was. `align` 0: that of all blocks.
void allocated(void* block, size_t align, size_t size, bool zero);
// A live block is about to be freed.
void released(void* block);

// The call under way is not what it seems further down: new, delete, or a free that says the size.
void note(hummock_record_call call, size_t size = 0, size_t align = 0);

// While one stands, the thread's calls are the allocator's own: a realloc that copies. Does nothing while
// nothing is recorded.
class Resize {
 public:
  explicit Resize(void* block);
  void* ends(void* block, size_t size);  // returns the block

 private:
  Heap* heap_ = nullptr;
};

}  // namespace hummock::modes::recording

#endif  // HUMMOCK_MODES_RECORDING_H
