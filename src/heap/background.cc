#include "heap/background.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/options.h"
#include "pages/backing.h"
#include "pages/pages.h"

namespace hummock::heap {
namespace {

constexpr long kPauseNs = 100'000'000;
constexpr size_t kStack = 64 << 10;

// It allocates nothing, so it never has a heap. It ends when the option is turned off.
void* run(void*) {
  while (options::values.background) {
    const timespec pause = {0, kPauseNs};
    nanosleep(&pause, nullptr);
    if (pages::purge_pending()) pages::tick();
    pages::collapse_one();  // here nobody waits for it
  }
  return nullptr;
}

}  // namespace

void start_background() {
  if (!options::values.background) return;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_t thread;
  pthread_create(&thread, &attributes, run, nullptr);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace hummock::heap
