// What the library does when it is mapped and when the program ends.
#include <stdlib.h>

#include "base/options.h"
#include "heap/attach.h"
#include "heap/background.h"
#include "heap/heap.h"
#include "modes/checked.h"
#include "modes/sampling.h"
#include "observe/log_summary.h"
#include "observe/notify.h"
#include "observe/page.h"
#include "observe/print.h"
#include "observe/snapshot.h"
#include "os/os.h"

namespace hummock::faces {
namespace {

// hummock_is_active() before main: another malloc may be the program's own, whose free is not ready yet (GNU
// Common Lisp's crashes). So its block stays.
bool is_active() {
  static void* volatile block;
  block = malloc(1);
  if (!heap::owns(block)) return false;
  free(block);
  return true;
}

__attribute__((constructor(101))) void start() {
  heap::initialise();
  if (options::values.verbose) observe::print_options();
  observe::start_page();
  heap::start_background();
  if (options::values.profile != 0 && !os::is_privileged()) modes::sampling::start(options::sample_bytes());
  observe::log_active(is_active);
  observe::notify_started(is_active);
}

__attribute__((destructor(101))) void end() {
  modes::checked::check_all();
  heap::check_freed_lately();
  const options::Path stats = options::values.stats;
  if (stats != nullptr) options::is_file(stats) ? observe::append_stats() : observe::print(2);
  observe::log_summary();
}

}  // namespace
}  // namespace hummock::faces
