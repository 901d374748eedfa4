#include "near.h"

#include <algorithm>
#include <numeric>

namespace hummock::tool {
namespace {

std::string small(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Letters to insert, remove or replace (Levenshtein).
size_t distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t replaced = diagonal + (a[i] != b[k] ? 1 : 0);
      diagonal = row[k + 1];
      row[k + 1] = std::min({replaced, diagonal + 1, row[k] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string meant_by(const std::string& word, const std::vector<std::string>& names) {
  std::string best;
  const std::string letters = small(word);
  // Of a short word at least one letter is right.
  size_t least = std::min(std::max<size_t>(2, word.size() / 3) + 1, word.size());
  for (const std::string& name : names) {
    // A beginning of the name is meant for it.
    const bool begins = word.size() > 3 && small(name).compare(0, word.size(), letters) == 0;
    const size_t off = begins ? 1 : distance(letters, small(name));
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
