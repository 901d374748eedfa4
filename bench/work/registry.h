// All workloads.
#pragma once
#include "workload.h"

const Workload* find_workload(const char* name);
// The name that takes the fewest changed letters.
const char* nearest_workload(const char* name);
void print_list();
