// The files of a result.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "bench/document.h"

namespace hummock::tool {

using Writer = void (*)(const std::string& path, const Json& document);

// Calls each writer whose file has a name, also after one has failed: what took hours is not lost with a full
// disk. Throws what went wrong.
void write_each(std::initializer_list<std::pair<std::string, Writer>> files, const Json& document);

}  // namespace hummock::tool
