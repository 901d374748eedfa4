// Values of options from text and back.
#ifndef HUMMOCK_BASE_OPTION_VALUE_H
#define HUMMOCK_BASE_OPTION_VALUE_H

#include <stdint.h>

#include "base/message.h"
#include "base/options.h"
#include "base/text.h"

namespace hummock::options {

// False when the text is no value that the option may have.
bool parse(const Option& option, base::Text t, int64_t* out);

// The same for words alone.
bool parse_as_word(const Option& option, base::Text t, int64_t* out);

// May the option have this number? Of texts, words alone.
bool allows(const Option& option, int64_t value);

void print_value(base::Line& line, const Option& option, int64_t value);
// "on or off", "0 to 16", "none or exit", "a size from 0 to 1T or auto".
void print_allowed(base::Line& line, const Option& option);
// Prints what a text that parse() rejects was probably meant to be.
void print_nearest(base::Line& line, const Option& option, base::Text t);

}  // namespace hummock::options

#endif  // HUMMOCK_BASE_OPTION_VALUE_H
