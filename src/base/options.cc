#include "base/options.h"

#include <errno.h>
#include <string.h>

#include "base/message.h"
#include "base/system.h"

namespace hummock::options {

constinit Values values;

namespace {

using base::Line;
using base::say;

enum Source : uint8_t { kDefault, kProgram, kConf, kVariable, kCall };

// Guarded by nothing: written at start, then only by set(), whose races are the caller's own last-wins.
uint8_t sources[kCount];

static_assert(sizeof(Values) == kCount * sizeof(int64_t), "the values stand in the order of the table");

char texts[kCount][kTextRoom];  // of the options that are texts

int64_t* slot(size_t index) {
  return reinterpret_cast<int64_t*>(&values) + index;
}
int64_t current(size_t index) {
  return __atomic_load_n(slot(index), __ATOMIC_RELAXED);
}

void store(size_t index, int64_t value, Source source) {
  __atomic_store_n(slot(index), value, __ATOMIC_RELAXED);
  __atomic_store_n(&sources[index], source, __ATOMIC_RELAXED);
}

// ---- Pieces of text -----------------------------------------------------------------------------

struct Text {
  const char* from;
  size_t length;
};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
char upper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

bool same(Text a, Text b) {
  if (a.length != b.length) return false;
  for (size_t i = 0; i < a.length; ++i) {
    if (lower(a.from[i]) != lower(b.from[i])) return false;
  }
  return true;
}

bool same(Text a, const char* b) {
  return same(a, Text{b, strlen(b)});
}

Text trimmed(Text t) {
  while (t.length != 0 && is_space(t.from[0])) ++t.from, --t.length;
  while (t.length != 0 && is_space(t.from[t.length - 1])) --t.length;
  return t;
}

// Takes the piece before the first of `separators` off the front of `*rest`, and the separator.
Text take(Text* rest, const char* separators) {
  size_t end = 0;
  while (end < rest->length && strchr(separators, rest->from[end]) == nullptr) ++end;
  const Text piece{rest->from, end};
  const size_t used = end < rest->length ? end + 1 : end;
  *rest = Text{rest->from + used, rest->length - used};
  return piece;
}

// ---- Values from text ---------------------------------------------------------------------------

bool parse_number(Text t, bool suffixes, int64_t* out) {
  const bool negative = t.length != 0 && t.from[0] == '-';
  if (negative) ++t.from, --t.length;
  int64_t number = 0;
  size_t i = 0;
  for (; i < t.length && t.from[i] >= '0' && t.from[i] <= '9'; ++i) {
    if (__builtin_mul_overflow(number, 10, &number)) return false;
    if (__builtin_add_overflow(number, t.from[i] - '0', &number)) return false;
  }
  if (i == 0) return false;
  if (suffixes && i + 1 == t.length) {
    const char* unit = strchr("kmgt", lower(t.from[i]));
    if (unit == nullptr || *unit == '\0') return false;
    for (const char* u = "kmgt"; u <= unit; ++u) {
      if (__builtin_mul_overflow(number, 1024, &number)) return false;
    }
    ++i;
  }
  *out = negative ? -number : number;
  return i == t.length;
}

// The next "name=value" of an option's words; false at their end.
bool next_word(Text* words, Text* name, int64_t* value) {
  if (words->length == 0) return false;
  Text pair = take(words, "|");
  *name = take(&pair, "=");
  return parse_number(pair, false, value);
}

bool parse_word(const char* list, Text t, int64_t* out) {
  Text words{list, strlen(list)};
  Text name;
  for (int64_t value; next_word(&words, &name, &value);) {
    if (same(t, name)) return *out = value, true;
  }
  return false;
}

bool parse_text(ptrdiff_t index, Text t, int64_t* out) {
  if (t.length == 0 || t.length >= kTextRoom) return false;
  memcpy(texts[index], t.from, t.length);
  texts[index][t.length] = '\0';
  *out = reinterpret_cast<intptr_t>(texts[index]);
  return true;
}

bool parse(const Option& option, Text t, int64_t* out) {
  if (parse_word(option.words, t, out)) return true;
  int64_t value = 0;
  switch (option.kind) {
    case Kind::choice:
      return false;
    case Kind::text:
      return parse_text(&option - kTable, t, out);
    case Kind::boolean:
      return parse_word("on=1|1=1|true=1|yes=1|off=0|0=0|false=0|no=0", t, out);
    case Kind::number:
    case Kind::size:
      if (!parse_number(t, option.kind == Kind::size, &value)) return false;
  }
  if (value < option.least || value > option.most) return false;
  *out = value;
  return true;
}

// ---- Text from values ---------------------------------------------------------------------------

void print_size(Line& line, int64_t value) {
  constexpr const char* kSuffixes[] = {"", "K", "M", "G", "T"};
  unsigned unit = 0;
  while (unit < 4 && value != 0 && value % 1024 == 0) value /= 1024, ++unit;
  line.signed_dec(value).text(kSuffixes[unit]);
}

void print_value(Line& line, const Option& option, int64_t value) {
  Text words{option.words, strlen(option.words)};
  Text name;
  for (int64_t number; next_word(&words, &name, &number);) {
    if (number == value) return void(line.text(name.from, name.length));
  }
  if (option.kind == Kind::boolean) return void(line.text(value != 0 ? "on" : "off"));
  if (option.kind == Kind::size) return print_size(line, value);
  if (option.kind == Kind::text)
    return void(line << reinterpret_cast<const char*>(static_cast<intptr_t>(value)));
  line.signed_dec(value);
}

// "on or off", "0 to 16", "none or exit", "a size from 0 to 1T (K, M, G, T), or auto".
void print_allowed(Line& line, const Option& option) {
  if (option.kind == Kind::boolean) line << "on or off";
  if (option.kind == Kind::text) {
    line << "a text of at most " << kTextRoom - 1 << " bytes";
    return;
  }
  const bool range = option.kind == Kind::number || option.kind == Kind::size;
  if (option.kind == Kind::size) {
    line << "a size from ";
    print_size(line, option.least);
    line << " to ";
    print_size(line, option.most);
  } else if (range) {
    line << option.least << " to " << option.most;
  }
  Text words{option.words, strlen(option.words)};
  Text name;
  bool first = !range;
  for (int64_t value; next_word(&words, &name, &value); first = false) {
    line.text(first ? "" : " or ").text(name.from, name.length);
  }
}

void print_variable(Line& line, const Option& option) {
  line << "HUMMOCK_";
  for (const char* c = option.name; *c != '\0'; ++c) {
    const char big = upper(*c);
    line.text(&big, 1);
  }
}

void print_source(Line& line, size_t index) {
  switch (__atomic_load_n(&sources[index], __ATOMIC_RELAXED)) {
    case kDefault:
      line << "default";
      break;
    case kProgram:
      line << base::program_conf_name();
      break;
    case kConf:
      line << "HUMMOCK_CONF";
      break;
    case kVariable:
      print_variable(line, kTable[index]);
      break;
    case kCall:
      line << "hummock_option_set";
      break;
  }
}

// ---- Names --------------------------------------------------------------------------------------

size_t find(Text name) {
  size_t index = 0;
  while (index < kCount && !same(name, kTable[index].name)) ++index;
  return index;
}

// Levenshtein's distance; names of more than kLongest characters are near nothing.
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

size_t nearest(Text name) {
  size_t best = 0;
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < kCount; ++i) {
    const size_t d = distance(name, Text{kTable[i].name, strlen(kTable[i].name)});
    if (d < least) least = d, best = i;
  }
  return best;
}

// ---- Assignment ---------------------------------------------------------------------------------

void warn_unknown(Text name, Source source) {
  const Option& near = kTable[nearest(name)];
  Line line;
  if (source == kVariable) {
    line.text("unknown variable HUMMOCK_").text(name.from, name.length).text("; the nearest is ");
    print_variable(line, near);
  } else {
    line.text("unknown option \"").text(name.from, name.length).text("\" in ");
    line << (source == kConf ? "HUMMOCK_CONF" : base::program_conf_name()) << "; the nearest is "
         << near.name;
  }
  say(line);
}

void assign(Text name, Text value, Source source) {
  const size_t index = find(name);
  if (index == kCount) return warn_unknown(name, source);
  const Option& option = kTable[index];
  int64_t parsed = 0;
  if (parse(option, value, &parsed)) return store(index, parsed, source);
  Line line;
  line.text("option ").text(option.name).text(" cannot be \"").text(value.from, value.length).text("\" (");
  line << (source == kProgram ? base::program_conf_name()
           : source == kConf  ? "HUMMOCK_CONF"
                              : "environment")
       << "); it may be ";
  print_allowed(line, option);
  line << "; kept ";
  print_value(line, option, current(index));
  say(line);
}

// "key:value,key=value"; empty entries are skipped.
void assign_all(const char* conf, Source source) {
  Text rest{conf, strlen(conf)};
  while (rest.length != 0) {
    Text value = trimmed(take(&rest, ","));
    if (value.length == 0) continue;
    const Text name = trimmed(take(&value, ":="));
    assign(name, trimmed(value), source);
  }
}

bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

// HUMMOCK_CONF first: single variables go over it, wherever it stands.
void read_environment(const char* const* environment) {
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    if (starts_with(*entry, "HUMMOCK_CONF=")) assign_all(*entry + strlen("HUMMOCK_CONF="), kConf);
  }
  for (const char* const* entry = environment; *entry != nullptr; ++entry) {
    if (!starts_with(*entry, "HUMMOCK_") || starts_with(*entry, "HUMMOCK_CONF=")) continue;
    if (starts_with(*entry, "HUMMOCK_RUN_")) continue;  // the command line tool's own
    const char* key = *entry + strlen("HUMMOCK_");
    Text value{key, strlen(key)};
    const Text name = take(&value, "=");
    assign(name, trimmed(value), kVariable);
  }
}

}  // namespace

void load(const char* program_conf, const char* const* environment) {
  for (size_t i = 0; i < kCount; ++i) store(i, kTable[i].initial, kDefault);
  if (program_conf != nullptr) assign_all(program_conf, kProgram);
  if (environment != nullptr) read_environment(environment);
}

void init(bool secure) {
  load(base::program_conf(), secure ? nullptr : base::environment());
}

int get(const char* name, char* value, size_t room) {
  if (value == nullptr) room = 0;
  if (room != 0) value[0] = '\0';
  const size_t index = name == nullptr ? kCount : find(Text{name, strlen(name)});
  if (index == kCount) return ENOENT;
  Line line("");
  print_value(line, kTable[index], current(index));
  if (room == 0) return ERANGE;
  const size_t length = line.size() < room ? line.size() : room - 1;
  memcpy(value, line.data(), length);
  value[length] = '\0';
  return length == line.size() ? 0 : ERANGE;
}

int set(const char* name, const char* value) {
  const size_t index = name == nullptr ? kCount : find(Text{name, strlen(name)});
  if (index == kCount) return ENOENT;
  if (kTable[index].kind == Kind::text) return EPERM;  // its text is read without a lock
  int64_t parsed = 0;
  if (value == nullptr || !parse(kTable[index], trimmed(Text{value, strlen(value)}), &parsed)) return EINVAL;
  if (kTable[index].when == When::start) return EPERM;
  store(index, parsed, kCall);
  return 0;
}

void print_effective(int fd, const char* prefix) {
  for (size_t i = 0; i < kCount; ++i) {
    Line line(prefix);
    line << kTable[i].name << ":";
    print_value(line, kTable[i], current(i));
    line << " (";
    print_source(line, i);
    base::write_line(fd, line << ")");
  }
}

void print_help(int fd) {
  for (const Option& option : kTable) {
    Line line("");
    line.text("  ").text(option.name).pad_to(18);
    line << option.help << " [";
    print_allowed(line, option);
    line << "; default ";
    print_value(line, option, option.initial);
    base::write_line(fd, line << (option.when == When::start ? "; at start only]" : "]"));
  }
}

}  // namespace hummock::options
