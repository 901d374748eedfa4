#include "observe/log_summary.h"

#include "base/message.h"
#include "observe/stats.h"
#include "os/os.h"
#include "os/region_log.h"

namespace hummock::observe {
namespace {

using base::Line;

void note_bytes(const char* name, size_t bytes) {
  Line line("");
  os::log_note(name, line.bytes(bytes).text(", ").dec(bytes).text(" bytes"));
}

void note_count(const char* name, size_t count) {
  Line line("");
  os::log_note(name, line.dec(count));
}

}  // namespace

void log_active(bool (*is_active)()) {
  if (!os::is_logging()) return;
  os::log_note("active", Line("") << (is_active() ? "yes, the process's malloc is Hummock's"
                                                  : "no, the process's malloc is not Hummock's"));
}

void log_summary() {
  if (!os::is_logging()) return;
  hummock_stats_t stats = {};
  stats.size = sizeof stats;
  collect(&stats);
  os::log_memory(stats.live, stats.resident);  // where the curves end
  os::log_note("summary", Line("") << "the program ends");
  note_bytes("summary live", stats.live);
  note_bytes("summary committed", stats.committed);
  note_bytes("summary dirty", stats.dirty);
  note_bytes("summary resident", stats.resident);
  note_bytes("summary mapped", os::logged_total());
  note_bytes("summary peak", stats.peak);
  note_bytes("summary purged", stats.purged);
  note_count("summary large blocks", stats.large_blocks);
  note_count("summary threads", stats.threads);
  note_bytes("summary pinned", stats.huge_pinned);
  note_bytes("summary advised", stats.huge_advised);
  note_count("summary huge page requests refused", stats.huge_refusals);
  const os::HugeBytes huge = os::huge_bytes_in_use();
  note_bytes("summary transparent huge pages in use", huge.transparent);
  note_bytes("summary reserved huge pages in use", huge.reserved);
}

}  // namespace hummock::observe
