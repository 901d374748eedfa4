// Pieces of text that somebody else holds, compared without regard to case and locale.
#ifndef HUMMOCK_BASE_TEXT_H
#define HUMMOCK_BASE_TEXT_H

#include <stddef.h>

namespace hummock::base {

struct Text {
  const char* from;
  size_t length;
};

Text text_of(const char* words);

char lower(char c);
char upper(char c);

bool same(Text a, Text b);
bool same(Text a, const char* b);
bool begins_with(Text a, Text prefix);

Text trimmed(Text t);

// Takes the piece before the first of `separators` off the front of `*rest`, and the separator.
Text take(Text* rest, const char* separators);

// As much of a text as there is room for, with its NUL; what is no printable ASCII becomes '?'. Somebody may
// change the text meanwhile.
void copy_printable(const char* from, char* out, size_t room);

// Levenshtein's distance; texts of more than 32 characters are near nothing.
size_t distance(Text a, Text b);

}  // namespace hummock::base

#endif  // HUMMOCK_BASE_TEXT_H
