#include "trace_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "run.h"
#include "values.h"

namespace hummock::tool {
namespace {

const char kRecordNotes[] =
    "Examples:\n"
    "  hummock record -o server.trace -- ./server --port 80\n"
    "  hummock replay server.trace\n"
    "\n"
    "Programs that it starts are recorded too; children of a fork that start none are not.\n"
    "\n"
    "Exit status: the program's own; 1 the file cannot be written; 125 to 127 as hummock run.";

const char kReplayNotes[] =
    "Examples:\n"
    "  hummock replay server.trace                          on all allocators that are found\n"
    "  hummock replay server.trace --with glibc,jemalloc,hummock --html report.html\n"
    "  hummock replay server.trace --list                   the programs in it\n"
    "\n"
    "Exit status: 0; 1 a run failed, or differed from what was recorded; 2 wrong use, or the file is not a "
    "trace.";

}  // namespace

TraceCommands::TraceCommands(CLI::App& app) {
  record_ = app.add_subcommand("record", "record every call of the malloc family that a program makes");
  takes_output(record_->add_option("-o,--output", record_options_.file, "the trace"))->capture_default_str();
  record_->add_option("--lib", record_options_.library, "the library to preload")->type_name("FILE");
  record_->add_option("program", record_options_.command, "the program and its arguments, after --")
      ->required();
  record_->positionals_at_end()->footer(kRecordNotes);

  ReplayOptions& options = replay_options_;
  replay_ = app.add_subcommand(
      "replay", "replay a recorded program on several allocators and find the best one for it");
  replay_->add_option("file", options.file, "the trace")->required();
  replay_
      ->add_option("--with", options.with, "allocators: glibc, hummock, jemalloc and others, or NAME=LIBRARY")
      ->delimiter(',')
      ->option_text("NAME,...");
  takes_one_of(replay_->add_option("--touch", options.touch,
                                   "what to write in each block: none of it, a byte of each page (first), or "
                                   "all"),
               {"none", "first", "all"})
      ->capture_default_str();
  takes_count(replay_->add_option("--process", options.process,
                                  "the number of a recorded process; else the one with most calls"),
              1, INT32_MAX);
  takes_count(replay_->add_option("--repeat", options.repeat, "runs on each allocator"), 1, 1000)
      ->capture_default_str();
  takes_count(
      replay_->add_option("--window", options.window, "calls that a thread may be ahead of the others"), 1,
      1 << 30)
      ->capture_default_str();
  takes_time(replay_->add_option("--settle", options.settle,
                                 "time after the last call until memory is read once more, as 500ms or 2s; a "
                                 "number alone: seconds"),
             TimeUnit::kSeconds, 0, 3600)
      ->default_str("1s");
  takes_time(replay_->add_option("--timeout", options.timeout,
                                 "time after which a run is ended and counts as an error; a number alone: "
                                 "seconds"),
             TimeUnit::kSeconds, 0.001)
      ->default_str("10m");
  replay_->add_flag("--list", options.list, "name the programs in the trace");
  takes_output(replay_->add_option("--json", options.json, "write the result to this file"));
  takes_output(replay_->add_option("--csv", options.csv, "write one line for each allocator to this file"));
  takes_output(replay_->add_option("--html", options.html, "write a report for a browser to this file"));
  replay_->add_option("--worker", options.worker, "the program that replays: hummock-replay")
      ->type_name("FILE");
  replay_->add_option("--lib", options.library, "Hummock's library")->type_name("FILE");
  replay_->footer(kReplayNotes);
}

bool TraceCommands::chosen() const {
  return record_->parsed() || replay_->parsed();
}

int TraceCommands::run(int count, char** arguments) {
  const bool records = record_->parsed();
  try {
    if (records) return record(record_options_);
    replay_options_.command.assign(arguments, arguments + count);
    return replay(replay_options_);
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock %s: %s\n", records ? "record" : "replay", error.what());
  }
  return records ? kCannotOverride : 2;
}

}  // namespace hummock::tool
