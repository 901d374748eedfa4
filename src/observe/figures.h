// Gathers, in slices, what the page of figures holds.
#ifndef HUMMOCK_OBSERVE_FIGURES_H
#define HUMMOCK_OBSERVE_FIGURES_H

#include "hummock/page.h"
#include "observe/seen.h"

namespace hummock::observe {

// One look at the whole heap. It stops no thread and takes no lock above those of the page heap: exact when
// nothing else runs, else off by what other threads do meanwhile.
class Gathering {
 public:
  // Figures are written to *out, which stays.
  void begin(hummock_figures_t* out);
  // Looks at so many slots. True: all is done, but for `taken` and `snapshots`.
  bool step(unsigned slots);

 private:
  void visit(const SlabHeader* header);
  void count_slab(const Seen& slab);
  void finish();

  hummock_figures_t* out_ = nullptr;
  pages::Headers position_;
};

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_FIGURES_H
