#include "workload.h"
Family seed_family() { return {nullptr, 0}; }
Family spaces_family() { return {nullptr, 0}; }
Family shrink_family() { return {nullptr, 0}; }
Family frame_family() { return {nullptr, 0}; }
Family challenge_family() { return {nullptr, 0}; }
Family memory_family() { return {nullptr, 0}; }
Family trace_family() { return {nullptr, 0}; }
