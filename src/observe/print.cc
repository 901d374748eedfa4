#include "observe/print.h"

#include <errno.h>

#include "base/message.h"
#include "base/options.h"
#include "hummock/hummock.h"
#include "observe/stats.h"
#include "os/os.h"

namespace hummock::observe {
namespace {

using base::Line;
using base::write_line;

constexpr size_t kValue = 16;  // its column: right of the longest name

// A name, its bytes for people and its bytes exactly.
void print_bytes(int fd, const char* name, size_t bytes, const char* meaning) {
  Line line("");
  line.text("  ").text(name).pad_to(kValue).bytes(bytes).pad_to(28).right(bytes, 44);
  write_line(fd, line << "  " << meaning);
}

void print_count(int fd, const char* name, size_t count, const char* meaning) {
  Line line("");
  line.text("  ").text(name).pad_to(kValue).dec(count).pad_to(46);
  write_line(fd, line << meaning);
}

void print_classes(int fd, const hummock_stats_t& stats) {
  Line head("");
  head.pad_to(7).text("block").pad_to(18).text("slabs").pad_to(29).text("blocks").pad_to(42).text("bytes");
  write_line(fd, head);
  for (size_t i = 1; i < stats.classes; ++i) {
    const hummock_class_stats_t& c = stats.per_class[i];
    if (c.slabs == 0) continue;
    Line line("");
    line.right(c.block_size, 12).right(c.slabs, 23).right(c.live_blocks, 35);
    write_line(fd, line.right(c.live_blocks * c.block_size, 47));
  }
}

void write_xml(FILE* out, const Line& line) {
  fwrite(line.data(), 1, line.size() + 1, out);
}

void write_xml(FILE* out, const char* element, const char* type, size_t count, size_t size) {
  Line line("");
  line << "<" << element << " type=\"" << type << "\"";
  if (count != SIZE_MAX) line << " count=\"" << count << "\"";
  write_xml(out, line << " size=\"" << size << "\"/>");
}

// One terminal shows the lines of many processes.
void write_head(int fd, const char* what) {
  char program[64];
  os::program_name(program, sizeof program);
  Line line("");
  line << "hummock " << HUMMOCK_VERSION_MAJOR << "." << HUMMOCK_VERSION_MINOR << "." << HUMMOCK_VERSION_PATCH;
  line << " " << what << " of process " << os::process_id();
  if (program[0] != '\0') line << " (" << program << ")";  // Windows does not say
  write_line(fd, line);
}

}  // namespace

void print_options() {
  write_head(2, "options");
  options::print_effective();
}

void print(int fd) {
  hummock_stats_t stats = {};
  stats.size = sizeof(stats);
  collect(&stats);
  write_head(fd, "statistics");
  print_bytes(fd, "live", stats.live, "usable size of blocks in use");
  print_bytes(fd, "committed", stats.committed, "slabs and large blocks that hold them");
  print_bytes(fd, "dirty", stats.dirty, "free, not yet returned");
  print_bytes(fd, "resident", stats.resident, "whole process, as the system counts it");
  print_bytes(fd, "mapped", stats.mapped, "address space");
  print_bytes(fd, "peak", stats.peak, "highest committed + dirty");
  print_bytes(fd, "metadata", stats.metadata, "the allocator's own");
  print_bytes(fd, "purged", stats.purged, "returned so far");
  print_bytes(fd, "large", stats.large_bytes, "blocks above 64 KiB");
  print_bytes(fd, "pinned", stats.huge_pinned, "on reserved huge pages");
  print_bytes(fd, "advised", stats.huge_advised, "where Hummock asked for transparent huge pages");
  print_count(fd, "large blocks", stats.large_blocks, "their number");
  print_count(fd, "threads", stats.threads, "with a heap");
  print_count(fd, "heaps", stats.heaps, "made by the program");
  print_classes(fd, stats);
}

int print_xml(FILE* out) {
  hummock_stats_t stats = {};
  stats.size = sizeof(stats);
  collect(&stats);
  write_xml(out, Line("") << "<malloc version=\"1\">");
  write_xml(out, Line("") << "<heap nr=\"0\">");
  // glibc's <sizes> lists free chunks, which are not kept by size here: blocks in use, by class, instead.
  for (size_t i = 1; i < stats.classes; ++i) {
    const hummock_class_stats_t& c = stats.per_class[i];
    if (c.slabs == 0) continue;
    Line line("");
    line << "<class size=\"" << c.block_size << "\" slabs=\"" << c.slabs;
    write_xml(out, line << "\" live=\"" << c.live_blocks << "\"/>");
  }
  write_xml(out, Line("") << "</heap>");
  const size_t held = stats.committed + stats.dirty;
  write_xml(out, "total", "fast", 0, 0);
  write_xml(out, "total", "rest", SIZE_MAX, held > stats.live ? held - stats.live : 0);
  write_xml(out, "total", "mmap", stats.large_blocks, stats.large_bytes);
  write_xml(out, "system", "current", SIZE_MAX, held);
  write_xml(out, "system", "max", SIZE_MAX, stats.peak);
  write_xml(out, "aspace", "total", SIZE_MAX, stats.mapped);
  write_xml(out, "aspace", "mprotect", SIZE_MAX, stats.mapped);
  write_xml(out, Line("") << "</malloc>");
  return ferror(out) != 0 ? EIO : 0;
}

}  // namespace hummock::observe
