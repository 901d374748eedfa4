#include "replay_plan.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace hummock::tool {
namespace {

// A slot that another thread freed so many blocks ago may be taken without waiting for that thread.
constexpr std::size_t kManyFree = 1024;

std::ifstream open_trace(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw std::runtime_error(path + " is a folder");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path + " cannot be read: " + strerror(errno));
  return in;
}

// Calls `visit` for each call of the process.
template <class Visit>
void for_calls(const std::string& path, std::uint32_t process, Visit visit) {
  std::ifstream in = open_trace(path);
  TraceReader reader(in, path);
  TraceCall call;
  while (reader.next(call))
    if (call.process == process) visit(call);
}

// Where each thread's events begin and how many they are. All but the first thread are started by the one
// that made the call before their first.
std::vector<PlanThread> count_events(const std::string& path, std::uint32_t process) {
  std::vector<PlanThread> threads;
  std::uint32_t last = 0;
  for_calls(path, process, [&](const TraceCall& call) {
    if (call.thread >= threads.size()) {
      threads.resize(call.thread + 1);
      if (call.thread != 0) ++threads[last].count;
    }
    ++threads[call.thread].count;
    last = call.thread;
  });
  std::uint64_t first = 0;
  for (PlanThread& thread : threads) {
    thread.first = first;
    first += thread.count;
  }
  return threads;
}

// Gives each block a slot. One that is freed goes to the thread that freed it, so that a new block there
// waits for nobody.
class Slots {
 public:
  explicit Slots(std::size_t threads) : free_(threads) {}

  std::uint32_t take(std::uint32_t thread) {
    if (free_[thread].empty() && total_ > kManyFree * free_.size()) steal(thread);
    if (free_[thread].empty()) {
      turns_.push_back(0);
      return static_cast<std::uint32_t>(turns_.size() - 1);
    }
    const std::uint32_t slot = free_[thread].back();
    free_[thread].pop_back();
    --total_;
    return slot;
  }
  void give(std::uint32_t thread, std::uint32_t slot) {
    free_[thread].push_back(slot);
    ++total_;
  }
  std::uint32_t next_turn(std::uint32_t slot) { return turns_[slot]++; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(turns_.size()); }

 private:
  // Those that were freed longest ago.
  void steal(std::uint32_t thread) {
    auto& from = *std::max_element(free_.begin(), free_.end(),
                                   [](const auto& a, const auto& b) { return a.size() < b.size(); });
    for (std::size_t i = 0; i < kManyFree / 2; ++i) {
      free_[thread].push_back(from.front());
      from.pop_front();
    }
  }

  std::vector<std::deque<std::uint32_t>> free_;
  std::vector<std::uint32_t> turns_;
  std::size_t total_ = 0;
};

class Planner {
 public:
  Planner(std::vector<PlanThread> threads, PlanEvent* events)
      : threads_(threads), events_(events), slots_(threads.size()), seen_(1) {
    for (const PlanThread& thread : threads_) next_.push_back(thread.first);
  }

  void add(const TraceCall& call);
  void fill(PlanHead& head) const;

 private:
  struct Block {
    std::uint32_t slot;
    bool plain_new;  // operator new without an alignment, and never resized
    std::uint64_t size;
  };
  void put(std::uint32_t thread, const PlanEvent& event);
  void count(const TraceCall& call);

  std::vector<PlanThread> threads_;
  PlanEvent* events_;
  Slots slots_;
  std::vector<std::uint64_t> next_;  // of each thread's events
  std::vector<Block> blocks_;
  std::uint32_t seen_, last_ = 0, position_ = 0;
  std::uint64_t live_ = 0;
  PlanHead totals_ = {};
};

// A file that changed meanwhile must not lead out of the plan.
void Planner::put(std::uint32_t thread, const PlanEvent& event) {
  if (thread >= threads_.size() || next_[thread] == threads_[thread].first + threads_[thread].count)
    throw std::runtime_error("the trace changed while it was read");
  events_[next_[thread]++] = event;
}

void Planner::count(const TraceCall& call) {
  const bool resizes = call.call == kResize;
  totals_.allocations += is_allocation(call.call);
  totals_.releases += is_release(call.call);
  totals_.resizes += resizes;
  if (!is_release(call.call)) totals_.bytes += call.size;
  if (!is_allocation(call.call)) live_ -= blocks_[call.block].size;
  if (!is_release(call.call)) live_ += call.size;
  totals_.live_peak = std::max(totals_.live_peak, live_);
}

void Planner::add(const TraceCall& call) {
  if (call.thread >= seen_) {
    seen_ = call.thread + 1;
    put(last_, {0, call.thread, 0, position_, kStartThread, 0, 0});
  }
  last_ = call.thread;
  if (position_ == UINT32_MAX - 1) throw std::runtime_error("the process made too many calls to replay them");
  const bool fresh = is_allocation(call.call);
  if (fresh) blocks_.push_back({slots_.take(call.thread), call.call == HUMMOCK_RECORD_NEW, 0});
  count(call);
  Block& block = blocks_[call.block];
  PlanEvent event = {call.size,  block.slot, slots_.next_turn(block.slot), position_++, call.call,
                     call.align, 0};
  // A claim that does not hold on every allocator is left out.
  const bool claimed = block.plain_new && block.size == call.size && call.align == 0;
  if (call.call == HUMMOCK_RECORD_SIZED && !claimed) event.call = HUMMOCK_RECORD_FREE;
  if (call.call == kResize) block.plain_new = false;
  if (is_release(call.call)) slots_.give(call.thread, block.slot);
  block.size = call.size;
  put(call.thread, event);
}

void Planner::fill(PlanHead& head) const {
  const std::uint64_t events = head.events;
  const std::uint32_t threads = head.threads;
  head = totals_;
  std::copy(std::begin(kPlanMagic), std::end(kPlanMagic), head.magic);
  head.events = events;
  head.threads = threads;
  head.slots = slots_.count();
}

// A mapping of a whole new file.
class NewFile {
 public:
  NewFile(const std::string& path, std::size_t size) : size_(size) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    const int error = fd < 0 ? errno : posix_fallocate(fd, 0, static_cast<off_t>(size));
    if (error == 0) bytes_ = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0) close(fd);
    if (error != 0 || bytes_ == MAP_FAILED)
      throw std::runtime_error(path + ": no room for " + std::to_string(size >> 20) + " MiB: " +
                               strerror(error != 0 ? error : errno) + "; TMPDIR names another folder");
  }
  ~NewFile() { munmap(bytes_, size_); }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  char* bytes() const { return static_cast<char*>(bytes_); }

 private:
  std::size_t size_;
  void* bytes_ = MAP_FAILED;
};

}  // namespace

TraceSummary read_trace(const std::string& path) {
  std::ifstream in = open_trace(path);
  TraceReader reader(in, path);
  TraceCall call;
  while (reader.next(call)) {
  }
  return {reader.processes(), reader.cut()};
}

ReplayPlan::ReplayPlan(const std::string& trace, std::uint32_t process)
    : path_((std::filesystem::temp_directory_path() / "hummock-replay-XXXXXX").string()) {
  const std::vector<PlanThread> threads = count_events(trace, process);
  const int fd = mkstemp(path_.data());
  if (fd < 0) throw std::runtime_error(path_ + " cannot be made: " + strerror(errno));
  close(fd);
  try {
    head_.threads = static_cast<std::uint32_t>(threads.size());
    head_.events = threads.empty() ? 0 : threads.back().first + threads.back().count;
    const std::size_t table = sizeof head_ + threads.size() * sizeof(PlanThread);
    const NewFile file(path_, table + head_.events * sizeof(PlanEvent));
    Planner planner(threads, reinterpret_cast<PlanEvent*>(file.bytes() + table));
    for_calls(trace, process, [&](const TraceCall& call) { planner.add(call); });
    planner.fill(head_);
    memcpy(file.bytes(), &head_, sizeof head_);
    memcpy(file.bytes() + sizeof head_, threads.data(), threads.size() * sizeof(PlanThread));
  } catch (...) {
    unlink(path_.c_str());
    throw;
  }
}

ReplayPlan::~ReplayPlan() {
  unlink(path_.c_str());
}

}  // namespace hummock::tool
