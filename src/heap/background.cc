#include "heap/background.h"

#include "base/options.h"
#include "heap/idle.h"
#include "os/thread.h"
#include "pages/backing.h"
#include "pages/pages.h"

namespace hummock::heap {
namespace {

constexpr unsigned kPauseMs = 100;
constexpr unsigned kMostSlices = 100000;  // of one answer to who asks from outside

// It allocates nothing, so it never has a heap. It ends when the option is turned off.
void run() {
  while (options::values.background) {
    os::sleep_ms(kPauseMs);
    if (tick_pending()) tick();
    for (unsigned i = 0; is_asked() && i < kMostSlices; ++i) observer.serve();
    pages::collapse_one();  // here nobody waits for it
  }
}

}  // namespace

void start_background() {
  if (options::values.background) os::start_thread(run);
}

}  // namespace hummock::heap
