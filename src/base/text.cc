#include "base/text.h"

#include <string.h>

namespace hummock::base {
namespace {

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

}  // namespace

Text text_of(const char* words) {
  return {words, strlen(words)};
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool begins_with(Text a, Text prefix) {
  if (a.length < prefix.length) return false;
  for (size_t i = 0; i < prefix.length; ++i) {
    if (lower(a.from[i]) != lower(prefix.from[i])) return false;
  }
  return true;
}

bool same(Text a, Text b) {
  return a.length == b.length && begins_with(a, b);
}

bool same(Text a, const char* b) {
  return same(a, text_of(b));
}

Text trimmed(Text t) {
  while (t.length != 0 && is_space(t.from[0])) ++t.from, --t.length;
  while (t.length != 0 && is_space(t.from[t.length - 1])) --t.length;
  return t;
}

Text take(Text* rest, const char* separators) {
  size_t end = 0;
  while (end < rest->length && strchr(separators, rest->from[end]) == nullptr) ++end;
  const Text piece{rest->from, end};
  const size_t used = end < rest->length ? end + 1 : end;
  *rest = Text{rest->from + used, rest->length - used};
  return piece;
}

__attribute__((no_sanitize("thread"))) void copy_printable(const char* from, char* out, size_t room) {
  size_t length = 0;
  for (; length + 1 < room; ++length) {
    const char c = static_cast<const volatile char*>(from)[length];
    if (c == '\0') break;
    out[length] = c < ' ' || c >= 127 ? '?' : c;
  }
  out[length] = '\0';
}

size_t distance(Text a, Text b) {
  constexpr size_t kLongest = 32;
  if (a.length > kLongest || b.length > kLongest) return kLongest;
  size_t row[kLongest + 1];
  for (size_t j = 0; j <= b.length; ++j) row[j] = j;
  for (size_t i = 1; i <= a.length; ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.length; ++j) {
      const size_t change = diagonal + (lower(a.from[i - 1]) != lower(b.from[j - 1]));
      const size_t step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
      diagonal = row[j];
      row[j] = change < step ? change : step;
    }
  }
  return row[b.length];
}

}  // namespace hummock::base
