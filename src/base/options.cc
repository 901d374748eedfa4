#include "base/options.h"

#include <errno.h>
#include <string.h>

#include "base/message.h"
#include "base/option_value.h"
#include "base/system.h"
#include "base/text.h"

namespace hummock::options {

constinit Values values;

namespace {

using base::Line;
using base::say;
using base::Text;
using base::text_of;

enum Source : uint8_t { kDefault, kProgram, kConf, kVariable, kCall, kPage };

// Guarded by nothing: written at start, then only by set(), whose races are the caller's own last-wins.
uint8_t sources[kCount];

static_assert(sizeof(Values) == kCount * sizeof(int64_t), "the values stand in the order of the table");

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

void print_variable(Line& line, const Option& option) {
  line << "HUMMOCK_";
  for (const char* c = option.name; *c != '\0'; ++c) {
    const char big = base::upper(*c);
    line.text(&big, 1);
  }
}

void print_source(Line& line, size_t index, uint8_t source) {
  switch (source) {
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
    case kPage:
      line << "hummock set";
      break;
  }
}

// ---- Names --------------------------------------------------------------------------------------

size_t find(Text name) {
  size_t index = 0;
  while (index < kCount && !same(name, kTable[index].name)) ++index;
  return index;
}

size_t nearest(Text name) {
  size_t best = 0;
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < kCount; ++i) {
    const size_t d = distance(name, text_of(kTable[i].name));
    if (d < least) least = d, best = i;
  }
  return best;
}

// ---- Assignment ---------------------------------------------------------------------------------

// What somebody wrote, on one line and not too long for what is to be said of it.
void print_given(Line& line, Text given) {
  constexpr size_t kMost = 80;
  line << "\"";
  for (size_t i = 0; i < given.length && i < kMost; ++i) {
    const unsigned char c = static_cast<unsigned char>(given.from[i]);
    line.text(c < ' ' || c == 0x7f ? "?" : given.from + i, 1);
  }
  line << (given.length > kMost ? "...\"" : "\"");
}

// A promise without which the program would run: it ends.
void complain(Duty duty, const Line& line) {
  duty == Duty::promise ? base::quit(line) : say(line);
}

// Was one of the family of a promise meant, as of "space_"?
Duty duty_of_unknown(Text name, const Option& near) {
  Text rest = text_of(near.name);
  const Text family = base::take(&rest, "_");
  const bool of_it = rest.length != 0 && begins_with(name, Text{family.from, family.length + 1});
  return of_it ? near.duty : Duty::wish;
}

void tell_unknown(Text name, Source source) {
  const Option& near = kTable[nearest(name)];
  Line line;
  line << "unknown option ";
  print_given(line, name);
  line << " in " << (source == kConf ? "HUMMOCK_CONF" : base::program_conf_name()) << "; the nearest is "
       << near.name;
  complain(duty_of_unknown(name, near), line);
}

void tell_unknown_variable(Text name) {
  const Option& near = kTable[nearest(name)];
  Line line;
  line.text("unknown variable HUMMOCK_").text(name.from, name.length < 80 ? name.length : 80);
  line << "; the nearest is ";
  print_variable(line, near);
  complain(duty_of_unknown(name, near), line);
}

void tell_bad_value(size_t index, Text value, Source source) {
  const Option& option = kTable[index];
  Line line;
  line << "option " << option.name << " cannot be ";
  print_given(line, value);
  line << " (";
  print_source(line, index, source);
  line << ")";
  if (option.kind != Kind::text) {
    line << "; the nearest is ";
    print_nearest(line, option, value);
  }
  line << "; it may be ";
  print_allowed(line, option);
  if (option.duty == Duty::wish) {
    line << "; kept ";
    print_value(line, option, current(index));
  }
  complain(option.duty, line);
}

void assign(Text name, Text value, Source source) {
  const size_t index = find(name);
  if (index == kCount) return source == kVariable ? tell_unknown_variable(name) : tell_unknown(name, source);
  int64_t parsed = 0;
  if (!parse(kTable[index], value, &parsed)) return tell_bad_value(index, value, source);
  store(index, parsed, source);
}

// "key:value,key=value"; empty entries are skipped.
void assign_all(const char* conf, Source source) {
  Text rest{conf, strlen(conf)};
  while (rest.length != 0) {
    Text value = base::trimmed(base::take(&rest, ","));
    if (value.length == 0) continue;
    const Text name = base::trimmed(base::take(&value, ":="));
    assign(name, base::trimmed(value), source);
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
    const Text name = base::take(&value, "=");
    assign(name, base::trimmed(value), kVariable);
  }
}

// What is said of a space needs one.
void check_space() {
  if (values.space_initial != 0) return;
  for (size_t i = 0; i < kCount; ++i) {
    if (!begins_with(text_of(kTable[i].name), text_of("space_")) || current(i) == kTable[i].initial) continue;
    Line line;
    line << kTable[i].name << ":";
    print_value(line, kTable[i], current(i));
    base::quit(line << " needs a space, of the size space_initial; there is none");
  }
}

}  // namespace

void load(const char* program_conf, const char* const* environment) {
  for (size_t i = 0; i < kCount; ++i) store(i, kTable[i].initial, kDefault);
  if (program_conf != nullptr) assign_all(program_conf, kProgram);
  if (environment != nullptr) read_environment(environment);
  check_space();
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
  if (value == nullptr || !parse(kTable[index], base::trimmed(Text{value, strlen(value)}), &parsed))
    return EINVAL;
  if (kTable[index].when == When::start) return EPERM;
  store(index, parsed, kCall);
  return 0;
}

int set_number(size_t index, int64_t value) {
  if (index >= kCount) return ENOENT;
  const Option& option = kTable[index];
  if (option.kind == Kind::text || option.when == When::start) return EPERM;
  if (!allows(option, value)) return EINVAL;
  store(index, value, kPage);
  return 0;
}

void print_effective(int fd, const char* prefix) {
  for (size_t i = 0; i < kCount; ++i) {
    Line line(prefix);
    line << kTable[i].name << ":";
    print_value(line, kTable[i], current(i));
    line << " (";
    print_source(line, i, __atomic_load_n(&sources[i], __ATOMIC_RELAXED));
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
