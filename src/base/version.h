// The version as text.
#ifndef HUMMOCK_BASE_VERSION_H
#define HUMMOCK_BASE_VERSION_H

#include "hummock/hummock.h"

namespace hummock::base {

#define HUMMOCK_TEXT_OF(x) #x
#define HUMMOCK_TEXT(x) HUMMOCK_TEXT_OF(x)
inline constexpr char kVersion[] = HUMMOCK_TEXT(HUMMOCK_VERSION_MAJOR) "." HUMMOCK_TEXT(
    HUMMOCK_VERSION_MINOR) "." HUMMOCK_TEXT(HUMMOCK_VERSION_PATCH);
#undef HUMMOCK_TEXT
#undef HUMMOCK_TEXT_OF

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_VERSION_H
