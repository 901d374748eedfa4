// What the times of many calls come to.
#pragma once
#include "json.h"
#include "replay.h"

// The counter may go in steps of ten nanoseconds and more: the shortest span seen that is not 0.
double counter_step();

// For write_figures(): the timed calls of every row.
inline constexpr uint32_t kAllRows = ~uint32_t{0} - 1;
enum class Call { kMalloc, kFree };
// {"calls": …, "seen": {…}, "typical": {…}, "least": {…}} of the row's mallocs or frees; null when it has
// none.
void write_figures(Json& json, const Script& script, const Record& record, uint32_t row, Call call);
