#include "scan.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

namespace hummock::tool {
namespace {

const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));  // as /proc/PID/pagemap has them
const uint64_t kChunk = 256 * kPage;
constexpr uint64_t kRegion = uint64_t{32} << 20;  // the heap's address space comes in such pieces
constexpr uint64_t kBeforeMapping = uint64_t{1}
                                    << 17;  // what stands before a block with a mapping of its own
constexpr uint64_t kRedZone = 128;          // below the stack pointer, and in use

struct Mapping {
  uint64_t start, end;
  std::string access, path;
  bool writable() const { return access[0] == 'r' && access[1] == 'w'; }
};

std::vector<Mapping> read_mappings(pid_t thread) {
  std::ifstream file("/proc/" + std::to_string(thread) + "/maps");
  std::vector<Mapping> mappings;
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    Mapping each;
    char dash;
    std::string offset, device, inode;
    if (!(words >> std::hex >> each.start >> dash >> each.end >> each.access >> offset >> device >> inode))
      continue;
    std::getline(words >> std::ws, each.path);
    mappings.push_back(each);
  }
  if (mappings.empty()) throw std::runtime_error("the program's memory cannot be read");
  return mappings;
}

class Scan {
 public:
  Scan(const StoppedProcess& process, RawProfile* profile) : process_(process), blocks_(profile->live) {
    std::sort(blocks_.begin(), blocks_.end(), [](const auto& a, const auto& b) { return a.block < b.block; });
    const std::string folder = "/proc/" + std::to_string(process.thread);
    memory_ = open((folder + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
    pages_ = open((folder + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC);
    reach_.assign(blocks_.size(), Reach::lost);
    seen_.assign(blocks_.size(), false);
  }
  ~Scan() {
    close(memory_);
    close(pages_);
  }
  Scan(const Scan&) = delete;

  std::vector<Reach> run() {
    if (memory_ < 0) throw std::runtime_error("the program's memory cannot be read");
    scan_roots();
    for (const uint32_t block : follow()) reach_[block] = Reach::reachable;
    for (uint32_t block = 0; block < blocks_.size(); ++block) {
      if (seen_[block]) continue;
      seen_[block] = true;
      pending_.push_back(block);
      for (const uint32_t other : follow())
        if (other != block) reach_[other] = Reach::indirect;
    }
    return std::move(reach_);
  }

 private:
  // A block that was taken for lost is indirect if a later one leads to it.
  void see(uint64_t word) {
    if (blocks_.empty() || word < blocks_.front().block) return;
    auto at = std::upper_bound(blocks_.begin(), blocks_.end(), word,
                               [](uint64_t value, const RawSample& each) { return value < each.block; });
    --at;
    if (word - at->block >= at->size) return;
    const auto block = static_cast<uint32_t>(at - blocks_.begin());
    if (seen_[block]) {
      met_.push_back(block);
      return;
    }
    seen_[block] = true;
    pending_.push_back(block);
  }

  // All that pending blocks lead to, themselves too, and what is seen already on the way.
  std::vector<uint32_t> follow() {
    std::vector<uint32_t> found;
    while (!pending_.empty()) {
      const uint32_t block = pending_.back();
      pending_.pop_back();
      found.push_back(block);
      scan_words(blocks_[block].block, blocks_[block].block + blocks_[block].size);
    }
    // From lost blocks: those that are reachable stay so.
    for (const uint32_t block : met_)
      if (reach_[block] == Reach::lost) found.push_back(block);
    met_.clear();
    return found;
  }

  void scan_words(uint64_t from, uint64_t to) {
    from = (from + 7) & ~uint64_t{7};
    std::vector<uint64_t> words;
    while (from + 8 <= to) {
      const uint64_t end = std::min(to, (from / kChunk + 1) * kChunk);
      words.resize((end - from) / 8);
      const ssize_t got = pread(memory_, words.data(), words.size() * 8, static_cast<off_t>(from));
      for (ssize_t i = 0; i < got / 8; ++i) see(words[static_cast<size_t>(i)]);
      if (words.empty()) break;
      from += words.size() * 8;
    }
  }

  // Without pages that nobody touched: reservations are large.
  void scan_touched(uint64_t from, uint64_t to) {
    while (from < to) {
      const uint64_t end = std::min(to, (from / kChunk + 1) * kChunk);
      const uint64_t first = from / kPage;
      std::vector<uint64_t> entries((end - first * kPage + kPage - 1) / kPage);
      const ssize_t size = static_cast<ssize_t>(entries.size() * 8);
      const bool known =
          pread(pages_, entries.data(), entries.size() * 8, static_cast<off_t>(first * 8)) == size;
      for (size_t i = 0; i < entries.size(); ++i) {
        const uint64_t page = (first + i) * kPage;
        if (!known || (entries[i] >> 62) != 0)  // in memory, or swapped out
          scan_words(std::max(from, page), std::min(end, page + kPage));
      }
      from = end;
    }
  }

  // The heap itself: of it live blocks count, and what leads there. What was freed still has its pointers.
  void find_heap() {
    for (const RawSample& each : blocks_) {
      if (each.block % kRegion == 0) {
        excluded_.insert({each.block - kBeforeMapping, each.block + each.size});
      } else {
        const uint64_t region = each.block / kRegion * kRegion;
        excluded_.insert({region, region + kRegion});
      }
    }
  }

  void scan_outside_heap(uint64_t from, uint64_t to) {
    for (const auto& [start, end] : excluded_) {
      if (end <= from) continue;
      if (start >= to) break;
      if (start > from) scan_touched(from, start);
      from = std::max(from, end);
    }
    if (from < to) scan_touched(from, to);
  }

  // Where the mapping is known to be a stack and nothing else, what is below its pointer is no more.
  uint64_t in_use_from(const Mapping& mapping, const Mapping* before) const {
    const bool guarded = mapping.path.empty() && before != nullptr && before->end == mapping.start &&
                         before->access.compare(0, 3, "---") == 0;
    if (mapping.path != "[stack]" && !guarded) return mapping.start;
    for (const StoppedThread& thread : process_.threads) {
      const uint64_t from = thread.stack_pointer - kRedZone;
      if (from >= mapping.start && thread.stack_pointer < mapping.end) return from;
    }
    return mapping.start;
  }

  void scan_roots() {
    find_heap();
    for (const StoppedThread& thread : process_.threads)
      for (const uint64_t word : thread.registers) see(word);
    const std::vector<Mapping> mappings = read_mappings(process_.thread);
    const Mapping* before = nullptr;
    const Mapping* ours = nullptr;  // the library's data, and what follows it
    for (const Mapping& each : mappings) {
      const bool library = each.path.find("/libhummock.so") != std::string::npos ||
                           (each.path.empty() && ours != nullptr && ours->end == each.start);
      if (library) ours = &each;
      const bool own = library || each.path.rfind("/memfd:hummock", 0) == 0;
      const bool device = each.path.rfind("/dev/", 0) == 0 && each.path.rfind("/dev/shm/", 0) != 0 &&
                          each.path.rfind("/dev/zero", 0) != 0;
      if (each.writable() && !own && !device) scan_outside_heap(in_use_from(each, before), each.end);
      before = &each;
    }
  }

  const StoppedProcess& process_;
  std::vector<RawSample>& blocks_;
  std::vector<Reach> reach_;
  std::vector<bool> seen_;
  std::vector<uint32_t> pending_, met_;
  std::set<std::pair<uint64_t, uint64_t>> excluded_;
  int memory_ = -1, pages_ = -1;
};

}  // namespace

std::vector<Reach> scan(const StoppedProcess& process, RawProfile* profile) {
  return Scan(process, profile).run();
}

}  // namespace hummock::tool
