// The run-time options: one table makes the values and their defaults, the parser, the help text and
// the print of what is in effect.
//
// Where a value comes from; each overrides the one before: the default, the program's `hummock_conf`,
// HUMMOCK_CONF="key:value,key:value", HUMMOCK_<KEY>=value, hummock_option_set. A privileged (set-uid)
// process ignores its environment.
#ifndef HUMMOCK_BASE_OPTIONS_H
#define HUMMOCK_BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

namespace hummock::options {

// A text is a word or the name of a file, flags are some of the words joined by +.
// A limit is a size, or below zero a percentage of what the process's control group may have.
enum class Kind : uint8_t { boolean, number, size, duration, choice, text, limit, flags };
enum class When : uint8_t { any_time, start };  // may hummock_option_set change it?
// What happens for a value that Hummock does not understand: a promise ends the program, which would
// otherwise run without what it asked for; a wish gives a warning, and the old value stays.
enum class Duty : uint8_t { wish, promise };
enum class HugePages : uint8_t { off, automatic, thp, pool_2m, pool_1g, require };
// Null: none; a word, which is_file() tells from the name of a file.
using Path = const char*;
inline bool is_file(Path path) {
  return reinterpret_cast<uintptr_t>(path) > 1;
}
// Bits of space_with. With both of the last two, huge pages are required.
inline constexpr uint32_t kSpaceLock = 1, kSpaceZero = 2, kSpaceFirstAlloc = 4, kSpaceTryHuge = 8,
                          kSpaceHuge = 16;

inline constexpr size_t kTextRoom = 400;  // bytes of a text with its NUL

inline constexpr int64_t kMiB = int64_t{1} << 20;
inline constexpr int64_t kTiB = int64_t{1} << 40;

// X(type, name, kind, default, least, most, words, when, duty, help). `words` are names for values, as
// "name=value|name=value;name=value": all values of a choice, extra spellings for other kinds. Those after
// the semicolon are understood but not listed. An option with "on" or "off" also takes 1, true, yes, 0,
// false, no. The value of a text is the address of a copy that stays.
#define HUMMOCK_OPTIONS(X)                                                                                   \
  X(bool, verbose, boolean, 0, 0, 1, "", start, wish, "print at start which options are in effect")          \
  X(Path, stats, text, 0, 0, 0, "none=0|exit=1;off=0|on=1", any_time, wish,                                  \
    "print statistics when the program ends, or append a line of JSON to this file; %p: process, %t: time")  \
  X(bool, checked, boolean, 0, 0, 1, "", start, promise,                                                     \
    "find misuse of memory: quarantine, canaries, poison")                                                   \
  X(size_t, quarantine, size, 16 * kMiB, 0, kTiB, "", any_time, wish,                                        \
    "checked mode: bytes of freed blocks that wait before reuse")                                            \
  X(size_t, stacks, number, 8, 0, 16, "", start, wish,                                                       \
    "checked mode: frames kept of the stacks of allocation and free")                                        \
  X(int64_t, decay_ms, duration, 1000, -1, 86400000, "never=-1", any_time, wish,                             \
    "milliseconds until free memory returns to the system; 0: at once")                                      \
  X(size_t, dirty_max, size, -1, 0, kTiB, "auto=-1", any_time, wish,                                         \
    "most free memory that waits for its decay; auto: max(8M, an eighth of what is in use)")                 \
  X(int64_t, limit_soft, limit, 0, -100, kTiB, "none=0;off=0", any_time, promise,                            \
    "keep no free memory above this size, or above a part of the cgroup's memory, as 80%")                   \
  X(int64_t, limit_hard, limit, 0, -100, kTiB, "none=0;off=0", any_time, promise,                            \
    "malloc fails above this size, or above a part of the cgroup's memory, as 80%")                          \
  X(bool, background, boolean, 0, 0, 1, "", start, wish, "a thread returns memory while the program idles")  \
  X(size_t, space_initial, size, 0, 0, kTiB / 2, "none=0;off=0", start, promise,                             \
    "serve malloc only from a deterministic space of this size")                                             \
  X(size_t, space_expand, size, 0, 0, kTiB / 2, "never=0;off=0|none=0", start, promise,                      \
    "bytes by which that space expands when it is short")                                                    \
  X(uint32_t, space_with, flags, 0, 0, 31, "none=0|lock=1|zero=2|firstalloc=4|huge=16|tryhuge=8;off=0",      \
    start, promise,                                                                                          \
    "that space, joined by +: keep it in memory (lock), hand out zeros, take memory at the first "           \
    "allocation, on huge pages, on huge pages if there are any")                                             \
  X(HugePages, huge_pages, choice, 1, 0, 5, "off=0|auto=1|thp=2|2m=3|1g=4|require=5;none=0", start, promise, \
    "pages of 2 MiB or 1 GiB behind the heap; auto: in a large heap")                                        \
  X(size_t, huge_reserve, size, 0, 0, kTiB, ";off=0|none=0", start, promise,                                 \
    "huge pages to take at start and keep")                                                                  \
  X(size_t, huge_max, size, 0, 0, kTiB, "none=0;off=0", start, promise, "most memory on huge pages")         \
  X(bool, observe, boolean, 1, 0, 1, "", start, wish,                                                        \
    "publish a page of figures that `hummock stats` and others read from outside")                           \
  X(size_t, profile, size, 0, 0, kTiB, "off=0|on=1|all=2;none=0", start, wish,                               \
    "sample allocations from the start, one block in this many bytes; on: 512K; `hummock profile` shows "    \
    "them")                                                                                                  \
  X(size_t, guards, size, 0, 0, kTiB, "off=0|on=1;none=0", any_time, wish,                                   \
    "put one block in this many bytes in front of a page that nobody may touch, and report errors there "    \
    "with stacks; on: 2M")                                                                                   \
  X(Path, log, text, 0, 0, 0, "none=0|region=1;off=0|on=1", start, wish,                                     \
    "log memory taken from and returned to the system, in malloc_%p.log or this file; %p: process, %t: "     \
    "time")

// A value that any thread may read while another sets it; values do not order anything else.
template <class T>
class Value {
 public:
  constexpr explicit Value(int64_t initial) : raw_(initial) {}
  operator T() const { return (T)(intptr_t)__atomic_load_n(&raw_, __ATOMIC_RELAXED); }

 private:
  int64_t raw_;
};

struct Values {
#define HUMMOCK_OPTION_FIELD(type, name, kind, initial, ...) Value<type> name{initial};
  HUMMOCK_OPTIONS(HUMMOCK_OPTION_FIELD)
#undef HUMMOCK_OPTION_FIELD
};

struct Option {
  const char* name;
  Kind kind;
  When when;
  Duty duty;
  int64_t initial, least, most;
  const char* words;
  const char* help;
};

#define HUMMOCK_OPTION_ROW(type, name, kind, initial, least, most, words, when, duty, help) \
  Option{#name, Kind::kind, When::when, Duty::duty, initial, least, most, words, help},
inline constexpr Option kTable[] = {HUMMOCK_OPTIONS(HUMMOCK_OPTION_ROW)};
#undef HUMMOCK_OPTION_ROW
inline constexpr size_t kCount = sizeof(kTable) / sizeof(kTable[0]);

// The values in effect. They hold the defaults until init(), without any constructor having run.
extern Values values;

// Reads `hummock_conf` and, unless `secure` (AT_SECURE), the environment. Works before libc has run its
// constructors. Call once, before a second thread exists.
void init(bool secure);

// The same from the given places (either may be null), starting again from the defaults. Ends the program
// with a line when a promise is asked for that cannot be understood.
void load(const char* program_conf, const char* const* environment);

// As hummock_option_get and hummock_option_set.
int get(const char* name, char* value, size_t room);
int set(const char* name, const char* value);
// As set, for the option at this index of the table, with a number as parse() would make it.
int set_number(size_t index, int64_t value);

inline constexpr size_t kProfileAll = 2;  // of `profile`: every block
// The average bytes between two samples that `profile` asks for, or would if it were on; 1: every block.
size_t sample_bytes();
// The average bytes from one guarded block to the next, from `guards`; 0: off.
size_t guard_bytes();

// Prints one line for each option: "decay_ms:100 (HUMMOCK_CONF)", what it means and which values it takes.
void print_effective(int fd = 2, const char* prefix = "hummock: ");
void print_help(int fd);

}  // namespace hummock::options

#endif  // HUMMOCK_BASE_OPTIONS_H
