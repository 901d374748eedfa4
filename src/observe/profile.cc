#include "observe/profile.h"

#include <errno.h>

#include "base/message.h"
#include "modes/sample_table.h"
#include "os/files.h"
#include "os/os.h"
#include "pages/slab_header.h"

namespace hummock::observe {
namespace {

// A file that is written in pieces of memory of its own.
class Writer {
 public:
  Writer(int fd, char* memory, size_t room) : fd_(fd), memory_(memory), room_(room) {}

  void add(const base::Line& line) {
    if (length_ + line.size() > room_) flush();
    for (size_t i = 0; i < line.size(); ++i) memory_[length_++] = line.data()[i];
  }
  void flush() {
    if (error_ == 0) os::write_file(fd_, memory_, length_, &error_);
    length_ = 0;
  }
  int error() const { return error_; }

 private:
  int fd_;
  char* memory_;
  size_t room_, length_ = 0;
  int error_ = 0;
};

uint64_t whole(uint64_t blocks) {
  return (blocks + HUMMOCK_PROFILE_BLOCK / 2) / HUMMOCK_PROFILE_BLOCK;
}

// "  3:  1536 [   10:   5120]": live, and all there were.
void add_counts(base::Line* line, uint64_t live_blocks, uint64_t live, uint64_t blocks, uint64_t bytes) {
  line->dec(whole(live_blocks))
      .text(": ")
      .dec(live)
      .text(" [")
      .dec(whole(blocks))
      .text(": ")
      .dec(bytes)
      .text("]");
}

void write_stack(const hummock_profile_t* profile, const hummock_profile_stack_t& stack, Writer* out) {
  // acquire: pairs with the release of make_stack in modes/sample_table.cc.
  const uint32_t depth = __atomic_load_n(&stack.depth, __ATOMIC_ACQUIRE), first = relaxed(stack.first);
  if (relaxed(stack.total_bytes) == 0 || depth > HUMMOCK_PROFILE_DEPTH) return;
  if (first > HUMMOCK_PROFILE_FRAMES - depth) return;
  base::Line line("");
  add_counts(&line, relaxed(stack.live_blocks), relaxed(stack.live_bytes), relaxed(stack.total_blocks),
             relaxed(stack.total_bytes));
  out->add(line.text(" @"));
  for (uint32_t i = 0; i < depth; ++i) {
    base::Line address("");
    out->add(address.text(" ").hex(relaxed(profile->frame[first + i])));
  }
  base::Line end("");
  out->add(end.raw("\n"));
}

int write_all(const hummock_profile_t* profile, int fd, char* memory, size_t room) {
  Writer out(fd, memory, room);
  const hummock_profile_head_t& head = profile->head;
  base::Line line("");
  line.text("heap profile: ");
  add_counts(&line, relaxed(head.live_blocks), relaxed(head.live_bytes), relaxed(head.total_blocks),
             relaxed(head.total_bytes));
  out.add(line.raw(" @ heapprofile\n"));
  for (uint32_t i = 0; i < relaxed(head.stacks) && i < HUMMOCK_PROFILE_STACKS; ++i)
    write_stack(profile, profile->stack[i], &out);
  base::Line maps("");
  out.add(maps.raw("\nMAPPED_LIBRARIES:\n"));
  out.flush();
  int error = out.error();
  if (error == 0) os::copy_maps(fd, &error);
  return error;
}

}  // namespace

int write_profile(const char* path) {
  constexpr size_t kRoom = size_t{64} << 10;
  if (path == nullptr) return EINVAL;
  const hummock_profile_t* profile = modes::sampling::current_table();
  if (profile == nullptr) return ENOENT;
  char* memory = static_cast<char*>(os::map(kRoom));
  if (memory == nullptr) return ENOMEM;
  int error = 0;
  const int fd = os::open_new(path, &error);
  if (fd >= 0) {
    error = write_all(profile, fd, memory, kRoom);
    int at_end = 0;
    if (!os::close_file(fd, &at_end) && error == 0) error = at_end;
  }
  os::unmap(memory, kRoom);
  return error;
}

}  // namespace hummock::observe
