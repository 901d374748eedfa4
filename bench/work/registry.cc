#include "registry.h"

#include <string.h>

#include "child.h"
#include "json.h"

namespace {

constexpr Family (*kFamilies[])() = {basic_family,  random_family, large_family,   realloc_family,
                                     server_family, queue_family,  sharing_family, seed_family,
                                     spaces_family, shrink_family, frame_family,   challenge_family,
                                     memory_family, trace_family,  program_family, judge_family};

template <class Visit>
void each_workload(Visit visit) {
  for (const auto family_of_kind : kFamilies) {
    const Family family = family_of_kind();
    for (size_t i = 0; i < family.count; ++i) visit(family.workloads[i]);
  }
}

size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

// Letters to insert, remove or change.
size_t distance(const char* a, const char* b) {
  size_t row[64];
  const size_t width = least(strlen(b), 63);
  for (size_t j = 0; j <= width; ++j) row[j] = j;
  for (size_t i = 0; a[i] != 0; ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 1; j <= width; ++j) {
      const size_t above = row[j];
      row[j] = least(least(above, row[j - 1]) + 1, diagonal + (a[i] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[width];
}

template <class List>
void write_values(Json& json, const char* name, const List& list) {
  json.key(name).open('[');
  for (const auto value : list.value) {
    if (value == 0) break;
    json.number(static_cast<uint64_t>(value));
  }
  json.close(']');
}

// An empty list of a plan stands for the workload's own. Beside "ops", "seconds" is about how long they take.
void write_plan(Json& json, const char* name, const Plan& plan, const Workload& workload) {
  json.key(name);
  if (plan.seconds == 0 && plan.operations == 0) {
    json.null();
    return;
  }
  json.open('{');
  write_values(json, "threads", plan.threads.value[0] != 0 ? plan.threads : workload.threads);
  write_values(json, "sizes", plan.sizes.value[0] != 0 ? plan.sizes : workload.sizes);
  if (plan.operations != 0) json.key("ops").number(plan.operations);
  json.key("seconds").number(plan.seconds);
  json.key("settle").number(plan.settle);
  json.close('}');
}

void write_workload(Json& json, const Workload& workload) {
  json.open('{');
  json.key("name").text(workload.name);
  json.key("group").text(workload.group);
  json.key("title").text(workload.title);
  json.key("description").text(workload.description);
  json.key("unit").text(workload.unit);
  write_values(json, "threads", workload.threads);
  write_values(json, "sizes", workload.sizes);
  write_plan(json, "quick", workload.quick, workload);
  write_plan(json, "default", workload.normal, workload);
  write_plan(json, "full", workload.full, workload);
  json.close('}');
}

}  // namespace

const Workload* find_workload(const char* name) {
  const Workload* found = nullptr;
  each_workload([&](const Workload& workload) {
    if (strcmp(workload.name, name) == 0) found = &workload;
  });
  return found;
}

const char* nearest_workload(const char* name) {
  const char* nearest = "";
  size_t least_so_far = ~size_t{0};
  each_workload([&](const Workload& workload) {
    const size_t changes = distance(name, workload.name);
    if (changes < least_so_far) {
      least_so_far = changes;
      nearest = workload.name;
    }
  });
  return nearest;
}

void print_list() {
  Json json;
  json.open('[');
  each_workload([&](const Workload& workload) {
    if (workload.program == nullptr || is_installed(workload.program)) write_workload(json, workload);
  });
  json.close(']');
  json.print(1);
}
