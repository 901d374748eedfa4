#include "near.h"

#include <algorithm>

#include "base/text.h"

namespace hummock::tool {
namespace {

std::string small(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

base::Text text_of(const std::string& text) {
  return {text.data(), text.size()};
}

}  // namespace

std::string meant_by(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  const std::string letters = small(word);
  constexpr size_t kTooLong = 32;  // what base::distance says of longer words
  // Of a short word at least one letter is right.
  size_t least = std::min({std::max<size_t>(2, word.size() / 3) + 1, word.size(), kTooLong});
  for (const std::string& name : names) {
    // A beginning of the name is meant for it.
    const bool begins = word.size() > 3 && small(name).compare(0, word.size(), letters) == 0;
    const size_t off = begins ? 1 : base::distance(text_of(word), text_of(name));
    if (off < least) {
      least = off;
      best = name;
    }
  }
  return best;
}

std::string nearest_text(const std::string& word, const std::vector<std::string>& names) {
  const std::string near = meant_by(word, names);
  return near.empty() ? "" : "; the nearest is " + near;
}

}  // namespace hummock::tool
