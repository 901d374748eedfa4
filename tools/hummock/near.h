// What a word that is not understood was probably meant to be.
#pragma once

#include <string>
#include <vector>

namespace hummock::tool {

// Of `names` the one that differs least from `word`: by two letters or a third of it, whether large or small;
// else empty.
std::string meant_by(const std::string& word, const std::vector<std::string>& names);

// "; the nearest is NAME", or empty.
std::string nearest_text(const std::string& word, const std::vector<std::string>& names);

}  // namespace hummock::tool
