// The reader of traces, on any bytes: as a file, or packed as one, so that most get as far as the records.
#include "trace.h"

#include <zstd.h>

#include <sstream>
#include <stdexcept>
#include <vector>

#include "fuzz.h"

namespace tool = hummock::tool;

namespace {

std::string packed(const std::string& text) {
  std::vector<char> frame(ZSTD_compressBound(text.size()));
  const size_t size = ZSTD_compress(frame.data(), frame.size(), text.data(), text.size(), 1);
  std::string file(tool::kTraceMagic);
  file.append(reinterpret_cast<const char*>(&tool::kTraceVersion), sizeof tool::kTraceVersion);
  return file.append(frame.data(), size);
}

void read(const std::string& file) {
  using fuzz::expect;
  std::istringstream in(file);
  tool::TraceReader reader(in, "fuzz");
  std::vector<std::vector<bool>> live;
  uint64_t calls = 0, counted = 0;
  for (tool::TraceCall call; reader.next(call); ++calls) {
    expect(call.process < reader.processes().size(), "a process that began");
    expect(call.thread < reader.processes()[call.process].threads, "a thread that was counted");
    expect(call.size <= tool::kMostSize && call.align <= tool::kMostAlign, "sizes that can be asked for");
    live.resize(reader.processes().size());
    std::vector<bool>& blocks = live[call.process];
    if (tool::is_allocation(call.call)) {
      expect(call.block == blocks.size(), "numbers that count");
      blocks.push_back(true);
      continue;
    }
    expect(call.block < blocks.size() && blocks[call.block], "a live block");
    if (tool::is_release(call.call)) blocks[call.block] = false;
  }
  for (const tool::TraceProcess& one : reader.processes()) counted += one.calls;
  expect(calls == counted, "as many calls as are counted");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const bool whole = input.below(4) == 0;
  const std::string text = input.rest();
  try {
    read(whole ? text : packed(text));
  } catch (const std::runtime_error& error) {
    const std::string said = error.what();
    fuzz::expect(said.rfind("fuzz ", 0) == 0 && said.find('\n') == std::string::npos,
                 "one line, with its file");
  }
  return 0;
}
