// Writes a trace. A file that cannot be opened is thrown, as one line; one that cannot be written any more
// takes no more, as the program goes on. The file is as it was until the first program is there.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trace.h"

struct ZSTD_CCtx_s;

namespace hummock::tool {

class TraceWriter {
 public:
  explicit TraceWriter(const std::string& path);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  std::uint32_t add_process(std::uint32_t pid, const std::string& program);
  // Its number. A trace has kMostThreads at most: all later ones are the last.
  std::uint32_t add_thread(std::uint32_t process) {
    std::uint32_t& threads = processes_[process].threads;
    return threads < kMostThreads ? threads++ : threads - 1;
  }
  // The counts of processes()[process] that the calls do not say.
  void end_process(std::uint32_t process);
  // An allocation's block is given its number.
  void add(TraceCall& call);
  // The trace is whole.
  void finish();

  std::vector<TraceProcess>& processes() { return processes_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  // Empty, or why the trace is not whole.
  const std::string& failure() const { return failure_; }

 private:
  void put(std::uint8_t byte) { text_.push_back(static_cast<char>(byte)); }
  void put_number(std::uint64_t value);
  void begin();
  void pack();
  void write(const char* bytes, std::size_t count);
  void fail();

  std::string path_, failure_;
  bool is_new_;
  FILE* file_;
  ZSTD_CCtx_s* context_;
  std::vector<char> text_, packed_;
  std::uint64_t file_bytes_ = 0;
  std::vector<TraceProcess> processes_;
  std::vector<std::uint64_t> times_;
  std::uint32_t process_ = UINT32_MAX, thread_ = 0;
};

}  // namespace hummock::tool
