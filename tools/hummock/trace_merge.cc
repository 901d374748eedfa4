#include "trace_merge.h"

#include <algorithm>

namespace hummock::tool {
namespace {

// A thread draws a number and writes the event at once. When it is missing after so many looks with events
// that wait for it, the thread was ended in between.
constexpr unsigned kMostLooks = 2000;
constexpr std::size_t kMostWaiting = 4 << 20;

}  // namespace

std::uint32_t& BlockNumbers::of(std::uint64_t address) {
  const std::uint64_t page = address >> kPageBits;
  if (page != last_) {
    std::unique_ptr<Page>& found = pages_[page];
    if (found == nullptr) {
      found = std::make_unique<Page>();
      found->fill(kNone);
    }
    last_ = page;
    last_page_ = found.get();
  }
  return (*last_page_)[(address >> kStepBits) % last_page_->size()];
}

void TraceMerge::add(Thread& thread, TraceCall& call) {
  if (thread.number == kNoNumber) thread.number = writer_.add_thread(process_);
  call.thread = thread.number;
  writer_.add(call);
}

void TraceMerge::end_thread(std::uint64_t thread) {
  ended_.push_back(thread);
}

void TraceMerge::write_release(Thread& thread, TraceCall call, std::uint64_t address) {
  std::uint32_t& number = numbers_.of(address);
  if (number == BlockNumbers::kNone) {
    ++writer_.processes()[process_].unknown;
    return;
  }
  call.block = number;
  number = BlockNumbers::kNone;
  add(thread, call);
}

void TraceMerge::write_allocation(Thread& thread, TraceCall call, std::uint64_t address) {
  // Its free was dropped.
  if (numbers_.of(address) != BlockNumbers::kNone) {
    TraceCall lost = call;
    lost.call = HUMMOCK_RECORD_FREE;
    write_release(thread, lost, address);
  }
  if (writer_.processes()[process_].allocations == kMostBlocks) {
    ++writer_.processes()[process_].dropped;
    return;
  }
  add(thread, call);
  numbers_.of(address) = static_cast<std::uint32_t>(call.block);
}

void TraceMerge::end_resize(Thread& thread, TraceCall call, std::uint64_t address) {
  const std::uint32_t block = thread.block;
  thread.block = BlockNumbers::kNone;
  if (address == 0) {
    if (block != BlockNumbers::kNone) numbers_.of(thread.resized) = block;
    return;
  }
  if (block == BlockNumbers::kNone) {
    call.call = HUMMOCK_RECORD_MALLOC;
    return write_allocation(thread, call, address);
  }
  if (numbers_.of(address) != BlockNumbers::kNone) {
    TraceCall lost = call;
    lost.call = HUMMOCK_RECORD_FREE;
    write_release(thread, lost, address);
  }
  call.block = block;
  add(thread, call);
  numbers_.of(address) = block;
}

void TraceMerge::write(const Waiting& one) {
  Thread& thread = threads_[one.thread];
  TraceCall call;
  call.process = process_;
  call.call = static_cast<std::uint8_t>(one.event.when);
  call.align = std::min<std::uint8_t>(static_cast<std::uint8_t>(one.event.when >> 8), kMostAlign);
  call.time = one.event.when >> 16;
  call.size = std::min(one.event.size, kMostSize);
  const std::uint64_t address = one.event.address;
  if (is_allocation(call.call)) return write_allocation(thread, call, address);
  if (is_release(call.call)) return write_release(thread, call, address);
  if (call.call == kResize) return end_resize(thread, call, address);
  if (call.call != HUMMOCK_RECORD_RESIZE_BEGIN) return;
  std::uint32_t& number = numbers_.of(address);
  if (number == BlockNumbers::kNone) ++writer_.processes()[process_].unknown;
  thread.resized = address;
  thread.block = number;
  number = BlockNumbers::kNone;
}

void TraceMerge::settle(bool all) {
  const auto before = [](const Waiting& a, const Waiting& b) { return a.event.order < b.event.order; };
  if (!std::is_sorted(waiting_.begin(), waiting_.end(), before))
    std::stable_sort(waiting_.begin(), waiting_.end(), before);
  std::size_t done = 0;
  for (; done < waiting_.size(); ++done) {
    const std::uint64_t order = waiting_[done].event.order;
    const bool due = order <= next_;
    if (!due && !all && stuck_ < kMostLooks && waiting_.size() - done < kMostWaiting) break;
    stuck_ = 0;
    write(waiting_[done]);
    next_ = std::max(next_, order + 1);
  }
  stuck_ = done == 0 && !waiting_.empty() ? stuck_ + 1 : 0;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(done));
  if (!waiting_.empty()) return;
  for (const std::uint64_t thread : ended_) threads_.erase(thread);
  ended_.clear();
}

}  // namespace hummock::tool
