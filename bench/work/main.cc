// hummock-bench-work: one workload in one process, on whatever malloc the process has.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "registry.h"
#include "run.h"

namespace {

constexpr char kHelp[] =
    "usage: hummock-bench-work NAME [options]   run one workload, print one JSON object\n"
    "       hummock-bench-work --list           the workloads, as JSON\n"
    "  --threads N     threads (default: the workload's first)\n"
    "  --size BYTES    what the workload calls its size; K, M and G are understood\n"
    "  --seconds S     how long (default 0.5)\n"
    "  --ops N         instead: operations of each thread\n"
    "  --seed K        of the random numbers (default 1)\n"
    "  --settle S      seconds from the end, everything freed, until resident memory is read; meanwhile a\n"
    "                  few small blocks come and go every 10 ms (default 1; 0: not read)\n"
    "  --series        resident memory over time, too\n"
    "  --trace FILE    trace-replay: the trace to replay\n"
    "  --write-trace FILE  trace-replay: write the synthetic trace there\n";

uint64_t whole_number(const char* name, const char* text) {
  char* end = nullptr;
  errno = 0;
  uint64_t value = strtoull(text, &end, 10);
  static constexpr char kUnits[] = "KMG";
  const char* unit = end == text || *end == 0 ? nullptr : strchr(kUnits, *end);
  if (unit != nullptr) {
    value <<= 10 * (unit - kUnits + 1);
    ++end;
  }
  if (end == text || *end != 0 || errno != 0 || *text == '-') fail(2, "%s: '%s' is no number", name, text);
  return value;
}

double decimal(const char* name, const char* text) {
  char* end = nullptr;
  const double value = strtod(text, &end);
  if (end == text || *end != 0 || !(value >= 0) || value > 1e6) fail(2, "%s: '%s' is no time", name, text);
  return value;
}

// Takes one option and its value at `at`; returns how many arguments they are.
int take_option(Options& options, char** at) {
  const char* name = at[0];
  if (strcmp(name, "--series") == 0) {
    options.series = true;
    return 1;
  }
  const char* value = at[1];
  static constexpr const char* kNames[] = {"--threads", "--size",   "--seconds", "--ops",
                                           "--seed",    "--settle", "--trace",   "--write-trace"};
  bool known = false;
  for (const char* each : kNames) known |= strcmp(name, each) == 0;
  if (!known) fail(2, "unknown option %s; --help lists them", name);
  if (value == nullptr) fail(2, "%s needs a value", name);
  if (strcmp(name, "--threads") == 0) {
    const uint64_t threads = whole_number(name, value);
    if (threads < 1 || threads > 1024) fail(2, "--threads: 1 to 1024, not %s", value);
    options.threads = static_cast<unsigned>(threads);
  } else if (strcmp(name, "--size") == 0) {
    options.size = whole_number(name, value);
    if (options.size < 1 || options.size > size_t{1} << 36) fail(2, "--size: 1 to 64G, not %s", value);
  } else if (strcmp(name, "--seconds") == 0) {
    options.seconds = decimal(name, value);
  } else if (strcmp(name, "--ops") == 0) {
    options.operations = whole_number(name, value);
  } else if (strcmp(name, "--seed") == 0) {
    options.seed = whole_number(name, value);
  } else if (strcmp(name, "--settle") == 0) {
    options.settle = decimal(name, value);
  } else if (strcmp(name, "--trace") == 0) {
    options.trace = value;
  } else {
    options.write_trace = value;
  }
  return 2;
}

void print_help() {
  if (write(1, kHelp, sizeof kHelp - 1) < 0) _exit(3);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) fail(2, "name a workload; --list lists them, --help says more");
  if (strcmp(arguments[1], "--help") == 0) {
    print_help();
    return 0;
  }
  if (strcmp(arguments[1], "--list") == 0) {
    if (count > 2) fail(2, "--list takes no arguments");
    print_list();
    return 0;
  }
  if (arguments[1][0] == '-') fail(2, "the workload's name comes first, not %s", arguments[1]);
  Options options;
  options.workload = find_workload(arguments[1]);
  if (options.workload == nullptr)
    fail(2, "no workload '%s'; the nearest is '%s'", arguments[1], nearest_workload(arguments[1]));
  for (int i = 2; i < count;) i += take_option(options, arguments + i);
  if (options.threads == 0) options.threads = options.workload->threads.value[0];
  if (options.size == 0) options.size = options.workload->sizes.value[0];
  if (options.seconds <= 0 && options.operations == 0) fail(2, "--seconds: more than 0");
  ticks_calibrate();
  Run run(options);
  options.workload->run(run);
  run.settle();
  run.report();
  return 0;
}
