// A trace: every call to malloc and its kin of one program and of those it started, as a file. docs/replay.md
// says what it is for.
//
// The file: 8 letters, a 32-bit version, then frames of zstd, which together hold records. A record is a byte
// that says what it is, then numbers of 7 bits a byte, the lowest first; bit 7: more follow.
//   kProcess     a process begins: its number in the system, its name's length, the name. They count from 0.
//   kProcessEnd  process, dropped, unknown, forks, 1 where it had ended
//   kThread      process, thread: whose the calls that follow are. Threads count from 0 in each process.
//   kEnd         the trace is whole
//   kCall + call time since the process's call before (zigzag), then
//                for an allocation: the alignment's binary logarithm (of aligned calls alone), the size; its
//                block gets the next number of its process
//                else how many blocks were allocated since this one; the size, of realloc and sized calls;
//                the alignment's logarithm, of sized calls
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "hummock/record.h"

struct ZSTD_DCtx_s;

namespace hummock::tool {

inline constexpr char kTraceMagic[] = "HUMTRACE";
inline constexpr std::uint32_t kTraceVersion = 1;
enum TraceByte : std::uint8_t { kEnd = 0, kProcess = 1, kProcessEnd = 2, kThread = 3, kCall = 16 };

inline constexpr std::uint32_t kMostProcesses = 1 << 20;
inline constexpr std::uint32_t kMostThreads = 1 << 20;
inline constexpr std::uint64_t kMostBlocks = UINT32_MAX;  // of a process
inline constexpr std::uint64_t kMostSize = std::uint64_t{1} << 47;
inline constexpr unsigned kMostAlign = 46;

// The end of a realloc stands for all of it.
inline constexpr unsigned kResize = HUMMOCK_RECORD_RESIZE_END;
inline bool is_allocation(unsigned call) {
  return call >= HUMMOCK_RECORD_MALLOC && call <= HUMMOCK_RECORD_ALIGNED;
}
inline bool is_release(unsigned call) {
  return call >= HUMMOCK_RECORD_FREE && call <= HUMMOCK_RECORD_SIZED;
}

struct TraceCall {
  std::uint32_t process = 0, thread = 0;
  std::uint8_t call = 0;
  std::uint8_t align = 0;  // binary logarithm; 0: that of all blocks
  std::uint64_t time = 0;  // nanoseconds since the process began
  std::uint64_t block = 0;
  std::uint64_t size = 0;
};

struct TraceProcess {
  std::uint32_t pid = 0;
  std::string program;
  std::uint32_t threads = 0;
  std::uint64_t calls = 0, allocations = 0, releases = 0, resizes = 0;
  std::uint64_t bytes = 0;    // asked for, by realloc too
  std::uint64_t dropped = 0;  // calls that were not recorded
  std::uint64_t unknown = 0;  // frees of blocks whose allocation was not
  std::uint64_t forks = 0;    // children that were not
  bool ended = false;         // before the recording did
};

class TraceReader {
 public:
  // What is wrong with the file is thrown, by all of these, as one line that begins with its name.
  TraceReader(std::istream& in, std::string name);
  ~TraceReader();
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  // The next call; false: there is none.
  bool next(TraceCall& call);
  // Of what was read so far.
  const std::vector<TraceProcess>& processes() const { return processes_; }
  // After the last call: did the file end before the trace did?
  bool cut() const { return cut_; }

 private:
  struct State {
    std::uint64_t time = 0;
    std::vector<bool> live;
  };
  [[noreturn]] void refuse(const std::string& what) const;
  bool fill();
  bool byte(std::uint8_t& value);
  std::uint64_t number(std::uint64_t most, const char* what);
  void read_process();
  void read_process_end();
  void read_thread();
  void read_call(unsigned kind, TraceCall& call);
  void read_block(TraceCall& call, State& state);

  std::istream& in_;
  std::string name_;
  ZSTD_DCtx_s* context_;
  std::vector<char> packed_, text_;
  std::size_t packed_at_ = 0, packed_end_ = 0, at_ = 0, end_ = 0;
  bool amid_frame_ = false, cut_ = false, done_ = false;
  std::vector<TraceProcess> processes_;
  std::vector<State> states_;
  std::uint32_t process_ = 0, thread_ = 0;
  bool has_thread_ = false;
};

}  // namespace hummock::tool
