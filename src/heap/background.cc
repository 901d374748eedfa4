#include "heap/background.h"

#include "base/message.h"
#include "base/options.h"
#include "heap/heap_pool.h"
#include "heap/idle.h"
#include "os/thread.h"
#include "pages/backing.h"
#include "pages/pages.h"

namespace hummock::heap {
namespace {

constexpr unsigned kPauseMs = 100;
constexpr unsigned kMostSlices = 100000;  // of one answer to who asks from outside

// Memory is short on the machine, or in the process's group: what is free goes, however lately it was used.
void give_all() {
  if (options::values.decay_ms < 0) return;
  give_up_parked();
  purge_idle();
  pages::purge_all(0);
}

// It allocates nothing, so it never has a heap. It ends when the option is turned off.
void run() {
  while (options::values.background) {
    if (os::sleep_or_pressure(kPauseMs)) {
      give_all();
      os::sleep_ms(kPauseMs);  // so often at most
    }
    if (tick_pending()) tick();
    for (unsigned i = 0; is_asked() && i < kMostSlices; ++i) {
      unsigned calls = pages::kMostCalls;
      observer.serve(&calls);
    }
    pages::collapse_one();  // here nobody waits for it
  }
}

}  // namespace

void start_background() {
  if (!options::values.background) return;
  if (!os::watch_pressure() && options::values.verbose)
    base::say(
        base::Line() << "background: the system does not tell of memory pressure here; time alone counts");
  os::start_thread(run);
}

}  // namespace hummock::heap
