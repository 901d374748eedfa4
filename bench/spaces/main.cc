// hummock-bench-spaces: one scenario in one process, on the malloc that the process has or on a space.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "figures.h"

namespace {

constexpr char kHelp[] =
    "usage: hummock-bench-spaces SCENARIO [options]   run one scenario, print one JSON object\n"
    "       hummock-bench-spaces --list               the scenarios, as JSON\n"
    "  --space KIND   space, space-bare, space-threads or space-small-pages of the libhummock.so that is\n"
    "                 preloaded; else the process's malloc\n"
    "  --threads N    so many play the script, the first is measured (default 1); a space of one owner is "
    "made\n"
    "                 for each, one of all threads is shared\n"
    "  --replays N    timed replays of the scenario (default: its own, twice as many without --quick)\n"
    "  --seed K       of the random numbers (default 1)\n"
    "  --quick        shorter scripts\n";

struct Options {
  const Scenario* scenario = nullptr;
  const SpaceKind* space = nullptr;
  unsigned replays = 0;
  unsigned threads = 1;
  Effort effort = {false, 1};
};

uint64_t whole_number(const char* name, const char* text, uint64_t most) {
  char* end = nullptr;
  const uint64_t value = strtoull(text, &end, 10);
  if (end == text || *end != 0 || *text == '-' || value > most) fail(2, "%s: '%s' is not right", name, text);
  return value;
}

// Takes one option and its value at `at`; returns how many arguments they are.
int take_option(Options& options, char** at) {
  const char* name = at[0];
  if (strcmp(name, "--quick") == 0) {
    options.effort.quick = true;
    return 1;
  }
  const bool is_space = strcmp(name, "--space") == 0, is_replays = strcmp(name, "--replays") == 0,
             is_threads = strcmp(name, "--threads") == 0;
  if (!is_space && !is_replays && !is_threads && strcmp(name, "--seed") != 0)
    fail(2, "unknown option %s; --help lists them", name);
  if (at[1] == nullptr) fail(2, "%s needs a value", name);
  if (is_space) {
    options.space = find_space_kind(at[1]);
    if (options.space == nullptr) fail(2, "--space: there is no kind '%s'; --help lists them", at[1]);
  } else if (is_replays) {
    options.replays = static_cast<unsigned>(whole_number(name, at[1], 1000));
  } else if (is_threads) {
    options.threads = static_cast<unsigned>(whole_number(name, at[1], 64));
    if (options.threads == 0) fail(2, "--threads: '0' is not right");
  } else {
    options.effort.seed = whole_number(name, at[1], ~uint64_t{0});
  }
  return 2;
}

void print_list() {
  static Json json;
  json.open('[');
  list_scenarios([](const char* name) { json.text(name); });
  json.close(']').print(1);
}

void write_row(Json& json, const Script& script, const Record& record, uint32_t row, const Row& its) {
  json.open('{');
  json.key("size").number(static_cast<uint64_t>(its.size));
  json.key("blocks").number(static_cast<uint64_t>(its.blocks));
  json.key("malloc");
  write_figures(json, script, record, row, Call::kMalloc);
  json.key("free");
  write_figures(json, script, record, row, Call::kFree);
  json.close('}');
}

void report(const Options& options, const Script& script, const Record& record, uint32_t achieved) {
  Json json;
  json.open('{');
  json.key("scenario").text(options.scenario->name);
  json.key("replays").number(record.replays());
  json.key("threads").number(options.threads);
  json.key("calls").number(static_cast<uint64_t>(script.count()));
  json.key("failures").number(record.failures);
  json.key("minor_faults").number(record.minor_faults);
  json.key("peak_bytes").number(static_cast<uint64_t>(peak_bytes() - arena_used()));
  json.key("achieved").number(achieved);
  json.key("counter_step_ns").number(counter_step());
  json.key("rows").open('[');
  for (uint32_t row = 0; row < script.row_count(); ++row) {
    const Row& its = script.rows()[row];
    write_row(json, script, record, its.size == 0 ? kAllRows : row, its);
  }
  json.close(']');
  json.close('}');
  json.print(1);
}

void measure(const Options& options, const Script& script, Record& record, uint32_t* achieved) {
  if (options.space == nullptr)
    return replay(
        script, [] { return ProcessCalls{}; }, options.threads, record);
  const SpaceKind& kind = *options.space;
  const size_t bytes = options.scenario->space_bytes;
  if (kind.threads == HUMMOCK_SPACE_OWNER) {
    const auto own = [&] {
      uint32_t bits;
      const SpaceCalls calls = make_space(kind, bytes, &bits);
      __atomic_store_n(achieved, bits, __ATOMIC_RELAXED);
      return calls;
    };
    return replay(script, own, options.threads, record);
  }
  // Who spins for a thread that does not run would be measured waiting for it.
  SpaceKind any = kind;
  if (options.threads != 1) any.threads = HUMMOCK_SPACE_INHERIT;
  const SpaceCalls shared = make_space(any, bytes * options.threads, achieved);
  replay(
      script, [&] { return shared; }, options.threads, record);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) fail(2, "name a scenario; --list lists them, --help says more");
  if (strcmp(arguments[1], "--help") == 0) return write(1, kHelp, sizeof kHelp - 1) < 0 ? 3 : 0;
  if (strcmp(arguments[1], "--list") == 0) return print_list(), 0;
  Options options;
  options.scenario = find_scenario(arguments[1]);
  if (options.scenario == nullptr) fail(2, "no scenario '%s'; --list lists them", arguments[1]);
  for (int i = 2; i < count;) i += take_option(options, arguments + i);
  const Scenario& scenario = *options.scenario;
  if (options.replays == 0) options.replays = scenario.replays * (options.effort.quick ? 1 : 2);
  ticks_calibrate();
  const Script script = scenario.make(options.effort, scenario.space_bytes);
  Record record(script.count(), options.replays);
  uint32_t achieved = 0;
  measure(options, script, record, &achieved);
  report(options, script, record, achieved);
  return 0;
}
