// What the threads of a program wrote becomes one trace that can be read.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "trace_merge.h"

using namespace hummock::tool;

namespace {

struct File {
  std::string path = "merge_test." + std::to_string(getpid());
  ~File() { remove(path.c_str()); }
};

hummock_record_event_t event(std::uint64_t order, unsigned call, std::uint64_t address,
                             std::uint64_t size = 0) {
  return {order, address, size, order << 16 | call};
}

}  // namespace

TEST_CASE("a thread whose first calls are on blocks that nobody saw before is numbered when it is written") {
  File file;
  {
    TraceWriter writer(file.path);
    TraceMerge merge(writer, writer.add_process(1, "p"));
    merge.take(10, event(0, HUMMOCK_RECORD_FREE, 0x1000));
    merge.take(10, event(1, HUMMOCK_RECORD_RESIZE_BEGIN, 0x2000));
    merge.take(20, event(2, HUMMOCK_RECORD_MALLOC, 0x3000, 100));
    merge.take(10, event(3, HUMMOCK_RECORD_MALLOC, 0x4000, 200));
    merge.settle(true);
    CHECK(writer.processes()[0].unknown == 2);
    writer.end_process(0);
    writer.finish();
    CHECK(writer.failure() == "");
  }
  std::ifstream in(file.path, std::ios::binary);
  TraceReader reader(in, file.path);
  TraceCall call;
  std::string seen;
  while (reader.next(call)) seen += std::to_string(call.thread) + ":" + std::to_string(call.size) + " ";
  CHECK(seen == "0:100 1:200 ");
  CHECK(!reader.cut());
}

TEST_CASE("a trace has a most of threads; later ones are the last") {
  File file;
  {
    TraceWriter writer(file.path);
    const std::uint32_t process = writer.add_process(1, "p");
    for (std::uint32_t i = 0; i < kMostThreads; ++i) CHECK_UNARY(writer.add_thread(process) == i);
    CHECK(writer.add_thread(process) == kMostThreads - 1);
    writer.finish();
  }
}
