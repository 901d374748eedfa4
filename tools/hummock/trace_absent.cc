// Built without zstd.
#include <stdexcept>

#include "record.h"
#include "replay.h"

namespace hummock::tool {

int record(const RecordOptions&) {
  throw std::runtime_error("it is built where libzstd-dev is installed");
}

int replay(const ReplayOptions&) {
  throw std::runtime_error("it is built where libzstd-dev is installed");
}

}  // namespace hummock::tool
