// The options of hummock bench.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "bench/bench.h"
#include "bench/compare.h"
#include "bench/marked.h"
#include "bench/waste.h"
#include "values.h"

namespace hummock::tool {
namespace {

void add_choice(CLI::App* bench, BenchOptions& options) {
  bench->add_option("workload", options.workloads, "workloads or groups of them; none: all");
  auto* programs = bench->add_flag("--programs", options.programs,
                                   "other people's programs (compilers, interpreters, servers) as workloads");
  bench
      ->add_option("--program-list", options.program_list, "a list of programs (JSON), in place of Hummock's")
      ->type_name("FILE")
      ->needs(programs);
  auto* quick = bench->add_flag("--quick", options.quick, "at most 2 minutes");
  bench->add_flag("--full", options.full, "everything, however long it takes")->excludes(quick);
  bench
      ->add_option("--against", options.against,
                   "peers: names, apt, newest, or NAME=LIBRARY; none: all found")
      ->delimiter(',')
      ->option_text("NAME,...");
  bench->add_flag("--newest", options.newest, "also the newest peers, built from crates.io (needs cargo)");
  auto* threads = takes_count(
      bench->add_option("--threads", options.threads, "numbers of threads, in place of each workload's own"),
      1, 4096);
  auto* sizes =
      takes_size(bench->add_option("--sizes", options.sizes, "block sizes, in place of each workload's own"));
  for (CLI::Option* list : {threads, sizes})
    list->delimiter(',')->option_text(list->get_type_name() + ",...");
  programs->excludes(threads)->excludes(sizes);
  bench->add_option("--baseline", options.baseline, "the allocator that ratios are taken to")
      ->type_name("NAME")
      ->capture_default_str();
}

void add_method(CLI::App* bench, BenchOptions& options) {
  takes_count(bench->add_option("--repeat", options.repeat, "runs of each cell"), 1, 1000);
  takes_time(bench->add_option("--seconds", options.seconds,
                               "length of one run, as 500ms or 2s; a number alone: seconds"),
             TimeUnit::kSeconds, 0.001);
  takes_time(
      bench->add_option("--timeout", options.timeout,
                        "time after which a run is ended and counts as an error; a number alone: seconds"),
      TimeUnit::kSeconds, 0.001);
  takes_size(bench->add_option("--memory", options.memory,
                               "resident bytes above which a run is ended and counts as an error"));
  takes_time(bench->add_option("--budget", options.budget,
                               "time for the whole run, in place of the mode's; a number alone: minutes"),
             TimeUnit::kMinutes, 0.001, kLongest);
  takes_count(bench->add_option("--seed", options.seed, "seed of the workloads and of the order of runs"), 0,
              UINT64_MAX)
      ->capture_default_str();
  bench->add_option("--worker", options.worker, "the program that runs one workload: hummock-bench-work")
      ->type_name("FILE");
  bench->add_option("--lib", options.library, "Hummock's library")->type_name("FILE");
  bench->add_option("--peers", options.peers, "the folder where --newest builds; else build/peers")
      ->type_name("FOLDER");
}

void add_output(CLI::App* bench, BenchOptions& options) {
  takes_output(bench->add_option("--json", options.json, "write all results to this file"));
  takes_output(
      bench->add_option("--csv", options.csv, "write one line for each cell and allocator to this file"));
  takes_output(bench->add_option("--html", options.html, "write a report for a browser to this file"));
  bench->add_flag("--list", options.list, "list the workloads and the allocators found here");
}

}  // namespace

BenchCommand::BenchCommand(CLI::App& app) {
  bench_ = app.add_subcommand("bench", "measure Hummock and other allocators on this machine");
  add_choice(bench_, options_);
  add_method(bench_, options_);
  add_output(bench_, options_);
  compare_ = bench_->add_subcommand("compare", "what changed between two results");
  compare_->add_option("old", compare_options_.before, "an earlier result (JSON)")->required();
  compare_->add_option("new", compare_options_.after, "a later one")->required();
  takes_number(compare_->add_option("--gate", compare_options_.gate,
                                    "exit status 1 when Hummock got worse by more than this percent"),
               0.001, 1e6)
      ->type_name("PERCENT");
  table_ = bench_->add_subcommand("table", "a stored result as a Markdown table");
  table_->add_option("result", table_options_.result, "a result (JSON)")->required();
  takes_one_of(table_->add_option("--by", table_options_.by, "what each line is: group or workload"),
               {"group", "workload"})
      ->capture_default_str();
  auto* into =
      table_->add_option("--into", table_options_.into, "put it between the marker lines of this document")
          ->type_name("FILE");
  table_
      ->add_option("--check", table_options_.check, "exit status 1 when this document has a different table")
      ->type_name("FILE")
      ->excludes(into);
  spaces_ = bench_->add_subcommand("spaces", "deterministic spaces beside other allocators, call by call");
  add_spaces_options(spaces_, spaces_options_);
  usable_ = bench_->add_subcommand("usable", "")->group("");  // for measure_waste
}

bool BenchCommand::chosen() const {
  return bench_->parsed();
}

int BenchCommand::run(int count, char** arguments) {
  try {
    if (usable_->parsed()) return print_usable();
    if (compare_->parsed()) return compare_results(compare_options_);
    if (table_->parsed()) return make_table(table_options_);
    options_.command.assign(arguments, arguments + count);
    spaces_options_.command = options_.command;
    if (spaces_->parsed()) return bench_spaces(spaces_options_);
    return bench(options_);
  } catch (const std::exception& error) {
    fprintf(stderr, "hummock bench%s: %s\n", spaces_->parsed() ? " spaces" : "", error.what());
    return 2;
  }
}

}  // namespace hummock::tool
