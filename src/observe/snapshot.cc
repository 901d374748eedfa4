#include "observe/snapshot.h"

#include "base/message.h"
#include "base/options.h"
#include "base/system.h"
#include "base/version.h"
#include "hummock/hummock.h"
#include "modes/served.h"
#include "observe/figures.h"
#include "observe/json.h"
#include "os/os.h"
#include "os/region_log.h"

namespace hummock::observe {
namespace {

constexpr size_t kPathRoom = 4096;

// A space that serves malloc stands beside the heap.
void add_space(hummock_figures_t* figures) {
  hummock_stats_t its = {};
  modes::served::add_figures(&its);
  figures->live += its.live;
  figures->committed += its.committed;
  figures->peak += its.peak;
  figures->metadata += its.metadata;
  figures->mapped += its.mapped;
}

}  // namespace

size_t stats_json(char* out, size_t room) {
  auto* figures = static_cast<hummock_figures_t*>(os::map(sizeof(hummock_figures_t)));
  if (figures == nullptr) return 0;
  Gathering all;
  all.begin(figures);
  all.step(~0u);
  add_space(figures);
  char program[64];
  os::program_name(program, sizeof program);
  const uint64_t resident = os::resident_bytes() + figures->huge_pinned;  // which the system counts apart
  const size_t length =
      write_json({figures, os::process_id(), program, nullptr, base::kVersion, 0, resident}, out, room);
  os::unmap(figures, sizeof(hummock_figures_t));
  return length;
}

void append_stats() {
  char path[kPathRoom];
  os::expand_pattern(options::values.stats, path, sizeof path);
  int error = 0;
  const int file = os::open_append(path, &error);
  const size_t room = stats_json(nullptr, 0) + 4096;  // the second time there may be more
  char* text = static_cast<char*>(os::map(room));
  if (file < 0 || text == nullptr) {
    base::say(base::Line() << "the statistics of process " << os::process_id() << " cannot be written to "
                           << path << " (" << os::error_name(error) << ")");
    return;
  }
  const size_t length = stats_json(text, room);
  if (length != 0 && length < room) {
    text[length] = '\n';
    if (!base::write_text(file, text, length + 1))
      base::say(base::Line() << "the statistics of process " << os::process_id() << " cannot be written to "
                             << path << " whole: is the disk full?");
  }
  os::unmap(text, room);
}

}  // namespace hummock::observe
