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

void print_source(Line& line, const Option& option, uint8_t source) {
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
      print_variable(line, option);
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

// Prints what the user wrote, on one line and cut to leave room for the message.
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

// Was one of the family of a promise meant, as of "space_"? It begins like those, or is two letters off.
Duty duty_of_unknown(Text name, const Option& near) {
  constexpr size_t kMisspelt = 2;
  Text rest = text_of(near.name);
  const Text family = base::take(&rest, "_");
  if (rest.length == 0) return Duty::wish;
  const bool of_it = begins_with(name, Text{family.from, family.length + 1}) ||
                     distance(name, text_of(near.name)) <= kMisspelt;
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

void tell_bad_value(const Option& option, Text value, Source source, int64_t kept) {
  Line line;
  line << "option " << option.name << " cannot be ";
  print_given(line, value);
  line << " (";
  print_source(line, option, source);
  line << "); the nearest is ";
  print_nearest(line, option, value);
  line << "; it may be ";
  print_allowed(line, option);
  if (option.duty == Duty::wish) {
    line << "; kept ";
    print_value(line, option, kept);
  }
  complain(option.duty, line);
}

// ---- Options of former versions, which others have replaced ---------------------------------------

// For a file name and a size, which count where the new option is on.
constexpr int64_t kSampleBytes = 512 << 10;
constexpr size_t kGuardBytes = 2 << 20;  // one costs about 16 µs
int64_t sample_every = kSampleBytes;

struct Gone {
  Option was;
  const char* now;
  int64_t flag;  // of the new one, for the old one's 1; the next for its 2
};
constexpr Gone kGone[] = {
    {{"stats_file", Kind::text, When::start, Duty::wish, 0, 0, 0, "none=0", ""}, "stats", 0},
    {{"log_file", Kind::text, When::start, Duty::wish, 0, 0, 0, "malloc_%p.log=0", ""}, "log", 0},
    {{"space_lock", Kind::boolean, When::start, Duty::promise, 0, 0, 1, "", ""}, "space_with", kSpaceLock},
    {{"space_zero", Kind::boolean, When::start, Duty::promise, 0, 0, 1, "", ""}, "space_with", kSpaceZero},
    {{"space_reserve", Kind::choice, When::start, Duty::promise, 0, 0, 1, "start=0|firstalloc=1", ""},
     "space_with",
     kSpaceFirstAlloc},
    {{"space_huge", Kind::choice, When::start, Duty::promise, 0, 0, 2, "off=0|try=1|require=2;none=0|on=2",
      ""},
     "space_with",
     kSpaceTryHuge},
    {{"profile_bytes", Kind::size, When::start, Duty::wish, kSampleBytes, 1, kTiB, "", ""}, "profile", 0},
};
constexpr size_t kGoneFiles = 2;  // the first of them
char gone_files[kGoneFiles][kTextRoom];
Source gone_sources[kGoneFiles];

const Gone* find_gone(Text name) {
  for (const Gone& gone : kGone) {
    if (same(name, gone.was.name)) return &gone;
  }
  return nullptr;
}

void keep_file(const Gone& gone, Text value, Source source) {
  const ptrdiff_t number = &gone - kGone;
  const bool none = same(value, "none") || value.length == 0 || value.length >= kTextRoom;
  const size_t length = none ? 0 : value.length;
  memcpy(gone_files[number], value.from, length);
  gone_files[number][length] = '\0';
  gone_sources[number] = source;
}

// Those of the new option's flags that the old one was about.
int64_t mask_of(const Gone& gone) {
  return gone.flag | gone.flag << (gone.was.most - 1);
}

void assign_gone(const Gone& gone, Text value, Source source) {
  const size_t index = find(text_of(gone.now));
  Line line;
  line << "option " << gone.was.name << " is now " << gone.now << ":";
  int64_t parsed = 0;
  if (gone.was.kind == Kind::text) {
    keep_file(gone, value, source);
    say(line << "FILE");
    return;
  }
  if (!parse(gone.was, value, &parsed)) return tell_bad_value(gone.was, value, source, sample_every);
  if (gone.flag != 0) {
    const int64_t flag = parsed != 0 ? gone.flag << (parsed - 1) : 0;
    print_value(line, kTable[index], flag != 0 ? flag : gone.flag);
    store(index, (current(index) & ~mask_of(gone)) | flag, source);
  } else {
    sample_every = parsed;
    line << "BYTES";
  }
  say(line);
}

// In whatever order the two were given.
void take_gone_files() {
  for (size_t i = 0; i < kGoneFiles; ++i) {
    const size_t index = find(text_of(kGone[i].now));
    if (current(index) == 1 && gone_files[i][0] != '\0')
      store(index, static_cast<int64_t>(reinterpret_cast<intptr_t>(gone_files[i])), gone_sources[i]);
  }
}

void print_gone(Line& line, const Gone& gone) {
  const int64_t now = current(find(text_of(gone.now)));
  if (gone.was.kind == Kind::text) return print_value(line, gone.was, now > 1 ? now : 0);
  if (gone.flag == 0) return print_value(line, gone.was, static_cast<int64_t>(sample_bytes()));
  const int64_t most = gone.flag << (gone.was.most - 1);
  print_value(line, gone.was, (now & most) != 0 ? gone.was.most : (now & gone.flag) != 0);
}

void assign(Text name, Text value, Source source) {
  const size_t index = find(name);
  if (index == kCount) {
    if (const Gone* gone = find_gone(name)) return assign_gone(*gone, value, source);
    return source == kVariable ? tell_unknown_variable(name) : tell_unknown(name, source);
  }
  int64_t parsed = 0;
  if (!parse(kTable[index], value, &parsed))
    return tell_bad_value(kTable[index], value, source, current(index));
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

// The options of a space need a space.
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
  for (auto& file : gone_files) file[0] = '\0';
  sample_every = kSampleBytes;
  if (program_conf != nullptr) assign_all(program_conf, kProgram);
  if (environment != nullptr) read_environment(environment);
  take_gone_files();
  check_space();
}

void init(bool secure) {
  load(base::program_conf(), secure ? nullptr : base::environment());
}

int get(const char* name, char* value, size_t room) {
  if (value == nullptr) room = 0;
  if (room != 0) value[0] = '\0';
  const size_t index = name == nullptr ? kCount : find(Text{name, strlen(name)});
  const Gone* gone = index != kCount || name == nullptr ? nullptr : find_gone(text_of(name));
  if (index == kCount && gone == nullptr) return ENOENT;
  Line line("");
  gone != nullptr ? print_gone(line, *gone) : print_value(line, kTable[index], current(index));
  if (room == 0) return ERANGE;
  const size_t length = line.size() < room ? line.size() : room - 1;
  memcpy(value, line.data(), length);
  value[length] = '\0';
  return length == line.size() ? 0 : ERANGE;
}

int set(const char* name, const char* value) {
  const size_t index = name == nullptr ? kCount : find(Text{name, strlen(name)});
  if (index == kCount) return name != nullptr && find_gone(text_of(name)) != nullptr ? EPERM : ENOENT;
  const Option& option = kTable[index];
  const Text text = base::trimmed(Text{value, value != nullptr ? strlen(value) : 0});
  int64_t parsed = 0;
  if (option.kind == Kind::text) {  // a file's name is read without a lock
    if (!parse_as_word(option, text, &parsed)) return EPERM;
  } else if (value == nullptr || !parse(option, text, &parsed)) {
    return EINVAL;
  }
  if (option.when == When::start) return EPERM;
  store(index, parsed, kCall);
  return 0;
}

int set_number(size_t index, int64_t value) {
  if (index >= kCount) return ENOENT;
  const Option& option = kTable[index];
  if (option.when == When::start) return EPERM;
  if (!allows(option, value)) return EINVAL;
  store(index, value, kPage);
  return 0;
}

size_t sample_bytes() {
  const size_t bytes = values.profile;
  if (bytes < kProfileAll) return static_cast<size_t>(sample_every);
  return bytes == kProfileAll ? 1 : bytes;
}

size_t guard_bytes() {
  const size_t bytes = values.guards;
  return bytes == 1 ? kGuardBytes : bytes;
}

void print_effective(int fd, const char* prefix) {
  for (size_t i = 0; i < kCount; ++i) {
    Line line(prefix);
    line << kTable[i].name << ":";
    print_value(line, kTable[i], current(i));
    line << " (";
    print_source(line, kTable[i], __atomic_load_n(&sources[i], __ATOMIC_RELAXED));
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
