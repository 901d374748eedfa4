// The options of hummock bench spaces.
#include <CLI/CLI.hpp>

#include "bench/spaces_bench.h"
#include "values.h"

namespace hummock::tool {

void add_spaces_options(CLI::App* spaces, BenchSpacesOptions& options) {
  spaces->add_option("scenario", options.scenarios,
                     "sequential, churn, near-full, alternating, holes; none: all");
  spaces->add_flag("--quick", options.quick, "one round of shorter scripts: at most a minute");
  spaces->add_option("--against", options.against, "peers by name; none: all found")
      ->delimiter(',')
      ->option_text("NAME,...");
  takes_count(spaces->add_option("--rounds", options.rounds, "processes of each contestant and scenario"), 1,
              1000);
  takes_count(spaces->add_option("--threads", options.threads,
                                 "this many threads run each scenario at once, one is measured"),
              1, 64)
      ->capture_default_str();
  takes_one_of(
      spaces->add_option("--times", options.times,
                         "what the tables show: seen (all calls), typical (undisturbed replays), least"),
      {"seen", "typical", "least"})
      ->capture_default_str();
  takes_count(spaces->add_option("--seed", options.seed, "seed of the sizes and of the order"), 0, UINT64_MAX)
      ->capture_default_str();
  takes_output(spaces->add_option("--json", options.json, "write all figures to this file"));
  takes_output(spaces->add_option("--csv", options.csv,
                                  "write one line for each row, contestant and call to this file"));
  takes_output(spaces->add_option("--html", options.html, "write a report for a browser to this file"));
  spaces->add_option("--worker", options.worker, "the program that runs one scenario: hummock-bench-spaces")
      ->type_name("FILE");
  spaces->add_option("--lib", options.library, "Hummock's library")->type_name("FILE");
}

}  // namespace hummock::tool
