#include "base/option_value.h"

#include <string.h>

namespace hummock::options {
namespace {

using base::Line;
using base::Text;
using base::text_of;

// A suffix of a number, and what it multiplies by.
struct Unit {
  const char* name;
  int64_t factor;
};

// The first of several that are as near to a wrong unit is the one proposed: most people mean megabytes.
constexpr int64_t kKiB = 1024;
constexpr int64_t kGiB = kKiB * kMiB;
constexpr Unit kSizes[] = {{"M", kMiB},   {"G", kGiB},   {"K", kKiB},  {"T", kTiB},   {"MB", kMiB},
                           {"GB", kGiB},  {"KB", kKiB},  {"TB", kTiB}, {"MiB", kMiB}, {"GiB", kGiB},
                           {"KiB", kKiB}, {"TiB", kTiB}, {"B", 1},     {"", 1}};
constexpr Unit kDurations[] = {{"s", 1000}, {"ms", 1}, {"min", 60000}, {"m", 60000}, {"h", 3600000}, {"", 1}};
constexpr Unit kNone[] = {{"", 1}};

struct Units {
  const Unit* first;
  size_t count;
};

Units units_of(Kind kind) {
  if (kind == Kind::size || kind == Kind::limit) return {kSizes, sizeof(kSizes) / sizeof(Unit)};
  if (kind == Kind::duration) return {kDurations, sizeof(kDurations) / sizeof(Unit)};
  return {kNone, 1};
}

// Takes a number off the front of the text; what does not fit becomes the largest. False: there is none.
bool take_number(Text* t, int64_t* out) {
  const bool negative = t->length != 0 && t->from[0] == '-';
  size_t i = negative;
  int64_t number = 0;
  bool fits = true;
  for (; i < t->length && t->from[i] >= '0' && t->from[i] <= '9'; ++i) {
    fits &= !__builtin_mul_overflow(number, 10, &number);
    fits &= !__builtin_add_overflow(number, t->from[i] - '0', &number);
  }
  if (i == static_cast<size_t>(negative)) return false;
  if (!fits) number = INT64_MAX;
  *out = negative ? -number : number;
  *t = base::trimmed(Text{t->from + i, t->length - i});
  return true;
}

int64_t multiplied(int64_t number, int64_t factor) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(number, factor, &product)) return product;
  return number < 0 ? INT64_MIN : INT64_MAX;
}

// "512", "512M", "512 MiB": true, and the number, which may be out of the option's range.
bool parse_amount(Kind kind, Text t, int64_t* out) {
  int64_t number = 0;
  if (!take_number(&t, &number)) return false;
  const Units units = units_of(kind);
  for (size_t i = 0; i < units.count; ++i) {
    if (same(t, units.first[i].name)) return *out = multiplied(number, units.first[i].factor), true;
  }
  return false;
}

// "80%": true, and the number below zero that stands for it.
bool parse_percentage(Text t, int64_t* out) {
  int64_t number = 0;
  if (!take_number(&t, &number) || !same(t, "%") || number < 1 || number > 100) return false;
  *out = -number;
  return true;
}

// ---- Words ----------------------------------------------------------------------------------------

Text shown_words(const Option& option) {
  Text all = text_of(option.words);
  return base::take(&all, ";");
}

// The next "name=value"; false at their end.
bool next_word(Text* words, Text* name, int64_t* value) {
  Text pair{};
  while (pair.length == 0) {  // nothing stands before the semicolon where no word is told of
    if (words->length == 0) return false;
    pair = base::take(words, "|;");
  }
  *name = base::take(&pair, "=");
  return take_number(&pair, value);
}

bool parse_word(const char* list, Text t, int64_t* out) {
  Text words = text_of(list);
  Text name;
  for (int64_t value; next_word(&words, &name, &value);) {
    if (same(t, name)) return *out = value, true;
  }
  return false;
}

// An option that takes "on" and "off" takes these, too.
bool parse_switch(const char* list, Text t, int64_t* out) {
  int64_t on = 0;
  if (!parse_word("on=1|1=1|true=1|yes=1|off=0|0=0|false=0|no=0", t, &on)) return false;
  return parse_word(list, text_of(on != 0 ? "on" : "off"), out);
}

char texts[kCount][kTextRoom];  // of the options that are texts

bool parse_text(ptrdiff_t index, Text t, int64_t* out) {
  if (t.length == 0 || t.length >= kTextRoom) return false;
  memcpy(texts[index], t.from, t.length);
  texts[index][t.length] = '\0';
  *out = reinterpret_cast<intptr_t>(texts[index]);
  return true;
}

// A file's name has one of these in it: so a misspelt word makes none.
bool names_file(Text t) {
  for (size_t i = 0; i < t.length; ++i) {
    if (strchr("/\\.%", t.from[i]) != nullptr) return true;
  }
  return false;
}

bool parse_flags(const char* list, Text t, int64_t* out) {
  int64_t all = 0, one = 0;
  for (Text rest = t; rest.length != 0; all |= one) {
    if (!parse_word(list, base::trimmed(base::take(&rest, "+")), &one)) return false;
  }
  return *out = all, t.length != 0;
}

void print_flags(Line& line, Text words, int64_t value) {
  Text name;
  const char* before = "";
  for (int64_t flag; next_word(&words, &name, &flag);) {
    if (flag == 0 || (value & flag) != flag) continue;
    line.text(before).text(name.from, name.length);
    before = "+";
  }
}

constexpr const char* kSwitch = "on=1|off=0";

bool is_amount(Kind kind) {
  return kind == Kind::number || kind == Kind::size || kind == Kind::duration || kind == Kind::limit;
}

void print_size(Line& line, int64_t value) {
  if (value < 0) return void(line.signed_dec(-value).text("%"));
  constexpr const char* kSuffixes[] = {"", "K", "M", "G", "T"};
  unsigned unit = 0;
  while (unit < 4 && value != 0 && value % 1024 == 0) value /= 1024, ++unit;
  line.signed_dec(value).text(kSuffixes[unit]);
}

void print_nearest_word(Line& line, Text words, const char* list, Text t) {
  Text name{};
  Text best{};
  size_t least = SIZE_MAX;
  for (int64_t value; next_word(&words, &name, &value);) {
    const size_t d = distance(t, name);
    if (d < least) least = d, best = name;
  }
  constexpr const char* kWays[] = {"on", "off", "yes", "no"};
  for (const char* way : kWays) {
    int64_t value;
    const size_t d = distance(t, text_of(way));
    if (d < 2 && d < least && parse_switch(list, text_of(way), &value)) least = d, best = text_of(way);
  }
  line.text(best.from, best.length);
}

}  // namespace

bool parse(const Option& option, Text t, int64_t* out) {
  if (parse_word(option.words, t, out)) return true;
  if (option.kind == Kind::flags) return parse_flags(option.words, t, out);
  if (option.kind == Kind::text)
    return parse_switch(option.words, t, out) || (names_file(t) && parse_text(&option - kTable, t, out));
  if (option.kind == Kind::boolean) return parse_switch(kSwitch, t, out);
  if (option.kind == Kind::limit && parse_percentage(t, out)) return true;
  int64_t value = 0;
  if (is_amount(option.kind) && parse_amount(option.kind, t, &value)) {
    if (option.kind == Kind::limit && value < 0) return false;
    if (value < option.least || value > option.most) return false;
    return *out = value, true;
  }
  return parse_switch(option.words, t, out);
}

bool parse_as_word(const Option& option, Text t, int64_t* out) {
  return parse_word(option.words, t, out) || parse_switch(option.words, t, out);
}

bool allows(const Option& option, int64_t value) {
  Text words = text_of(option.words);
  Text name;
  for (int64_t number; next_word(&words, &name, &number);) {
    if (number == value) return true;
  }
  const bool words_alone = option.kind == Kind::choice || option.kind == Kind::text;
  return !words_alone && value >= option.least && value <= option.most;
}

void print_value(Line& line, const Option& option, int64_t value) {
  Text words = shown_words(option);
  Text name;
  for (int64_t number; next_word(&words, &name, &number);) {
    if (number == value) return void(line.text(name.from, name.length));
  }
  if (option.kind == Kind::boolean) return void(line.text(value != 0 ? "on" : "off"));
  if (option.kind == Kind::flags) return print_flags(line, shown_words(option), value);
  if (option.kind == Kind::size || option.kind == Kind::limit) return print_size(line, value);
  if (option.kind == Kind::text)
    return void(line << reinterpret_cast<const char*>(static_cast<intptr_t>(value)));
  line.signed_dec(value);
}

void print_allowed(Line& line, const Option& option) {
  if (option.kind == Kind::boolean) line << "on or off";
  if (option.kind == Kind::size || option.kind == Kind::limit) {
    line << "a size from ";
    print_size(line, option.least < 0 ? 0 : option.least);
    line << " to ";
    print_size(line, option.most);
    if (option.kind == Kind::limit) line << " or 1% to 100%";
  } else if (is_amount(option.kind)) {
    line << (option.least < 0 ? 0 : option.least) << " to " << option.most;  // below 0 there is a word for it
    if (option.kind == Kind::duration) line << " ms, as 100, 100ms, 2s or 1h,";
  }
  Text words = shown_words(option);
  Text name;
  bool first = !is_amount(option.kind);
  for (int64_t value; next_word(&words, &name, &value); first = false) {
    line.text(first ? "" : " or ").text(name.from, name.length);
  }
  if (option.kind == Kind::text) line << " or a file, with a / or . in its name";
  if (option.kind == Kind::flags) line << ", or several joined by +";
}

void print_nearest(Line& line, const Option& option, Text t) {
  if (option.kind == Kind::boolean) return print_nearest_word(line, text_of(kSwitch), kSwitch, t);
  const Text words = shown_words(option);
  if (option.kind == Kind::choice || option.kind == Kind::text || option.kind == Kind::flags)
    return print_nearest_word(line, words, option.words, t);
  Text unit = t;
  int64_t number = 0;
  if (!take_number(&unit, &number)) {
    if (words.length != 0) return print_nearest_word(line, words, option.words, t);
    return print_value(line, option, option.initial);
  }
  const Units units = units_of(option.kind);
  const Unit* best = units.first;
  for (size_t i = 1; i < units.count; ++i) {
    if (distance(unit, text_of(units.first[i].name)) < distance(unit, text_of(best->name)))
      best = units.first + i;
  }
  const int64_t value = multiplied(number, best->factor);
  if (option.kind == Kind::limit && value < 0) return print_value(line, option, option.initial);
  if (value < option.least) return print_value(line, option, option.least);
  if (value > option.most) return print_value(line, option, option.most);
  line.signed_dec(number).text(best->name);
}

}  // namespace hummock::options
