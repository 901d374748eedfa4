// What the threads of one process wrote, in one order, and with numbers of blocks in place of addresses.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "trace_write.h"

namespace hummock::tool {

// The numbers of the live blocks.
class BlockNumbers {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t& of(std::uint64_t address);

 private:
  static constexpr unsigned kStepBits = 3, kPageBits = 16;
  using Page = std::array<std::uint32_t, 1 << (kPageBits - kStepBits)>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::uint64_t last_ = UINT64_MAX;
  Page* last_page_ = nullptr;
};

class TraceMerge {
 public:
  TraceMerge(TraceWriter& writer, std::uint32_t process) : writer_(writer), process_(process) {}

  // `thread` tells apart the threads that there are at a time; its events come in their order.
  void take(std::uint64_t thread, const hummock_record_event_t& event) {
    waiting_.push_back({thread, event});
  }
  // Writes what no event can come before any more: up to the first number that is missing; or all there is.
  void settle(bool all);
  void end_thread(std::uint64_t thread);

 private:
  struct Waiting {
    std::uint64_t thread;
    hummock_record_event_t event;
  };
  static constexpr std::uint32_t kNoNumber = UINT32_MAX;
  struct Thread {
    std::uint32_t number = kNoNumber;  // in the trace: in the order of the threads' first calls there
    std::uint64_t resized = 0;         // the address of the block whose realloc is under way
    std::uint32_t block = BlockNumbers::kNone;
  };
  void write(const Waiting& one);
  void add(Thread& thread, TraceCall& call);
  void write_allocation(Thread& thread, TraceCall call, std::uint64_t address);
  void write_release(Thread& thread, TraceCall call, std::uint64_t address);
  void end_resize(Thread& thread, TraceCall call, std::uint64_t address);

  TraceWriter& writer_;
  std::uint32_t process_;
  std::vector<Waiting> waiting_;
  std::vector<std::uint64_t> ended_;
  std::uint64_t next_ = 0;  // number of the event that is due
  unsigned stuck_ = 0;      // times that it was missing
  std::map<std::uint64_t, Thread> threads_;
  BlockNumbers numbers_;
};

}  // namespace hummock::tool
