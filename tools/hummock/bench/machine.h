// What a result should say about the machine it is from.
#pragma once

#include "bench/document.h"

namespace hummock::tool {

Json machine_facts();
std::string date_now();  // ISO 8601, in UTC

}  // namespace hummock::tool
