// The families of misuse.
#ifndef HUMMOCK_TESTS_BATTERY_MISUSE_H
#define HUMMOCK_TESTS_BATTERY_MISUSE_H

#include "battery.h"
#include "probation.h"

namespace battery {

extern const Cases double_free_cases;
extern const Cases double_free_more_cases;
extern const Cases invalid_free_cases;
extern const Cases invalid_free_more_cases;
extern const Cases wrong_call_cases;
extern const Cases overflow_cases;
extern const Cases after_free_cases;

}  // namespace battery

#endif  // HUMMOCK_TESTS_BATTERY_MISUSE_H
