// What a run prints.
#include <unistd.h>

#include "run.h"

void Run::write_latency(Json& json) {
  json.key("latency");
  if (latency_ == nullptr || latency_->count() == 0)
    json.null();
  else
    latency_->write(json);
}

void Run::write_memory(Json& json) {
  json.key("peak_bytes").number(static_cast<uint64_t>(peak_bytes_));
  json.key("settled_bytes");
  if (options.settle > 0 && children_ == 0)
    json.number(static_cast<uint64_t>(settled_bytes_));
  else
    json.null();
  json.key("live_bytes").number(live_peak_);
  json.key("start_bytes").number(static_cast<uint64_t>(start_bytes_));
  json.key("books_bytes").number(static_cast<uint64_t>(arena_used()));
  json.key("minor_faults").number(minor_faults_);
  json.key("major_faults").number(major_faults_);
  json.key("page_size").number(static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

void Run::write_series(Json& json) {
  json.key("series").open('[');
  for (size_t i = 0; i < point_count_; ++i) {
    json.open('{');
    json.key("t").number(points_[i].time);
    json.key("resident").number(static_cast<uint64_t>(points_[i].resident));
    json.close('}');
  }
  json.close(']');
}

void Run::report() {
  Json json;
  json.open('{');
  json.key("workload").text(options.workload->name);
  json.key("threads").number(options.threads);
  json.key("size").number(static_cast<uint64_t>(options.size));
  json.key("seed").number(options.seed);
  json.key("unit").text(options.workload->unit);
  json.key("operations").number(total_.operations);
  json.key("seconds").number(total_.seconds);
  json.key("cpu_seconds").number(total_.cpu_seconds);
  json.key("system_seconds").number(system_seconds_);
  json.key("ops_per_second")
      .number(total_.seconds > 0 ? static_cast<double>(total_.operations) / total_.seconds : 0.0);
  write_memory(json);
  write_latency(json);
  if (rows_ != nullptr) {
    rows_->close(']');
    json.key("rows").splice(*rows_);
  }
  if (options.series) write_series(json);
  json.close('}');
  json.print(1);
}
