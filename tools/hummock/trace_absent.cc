// Built without zstd.
#include <stdexcept>

#include "record.h"
#include "replay.h"

namespace hummock::tool {

int record(const RecordOptions&) {
  throw std::runtime_error("it is built where libzstd-dev is there");
}

int replay(const ReplayOptions&) {
  throw std::runtime_error("it is built where libzstd-dev is there");
}

}  // namespace hummock::tool
