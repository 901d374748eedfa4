#include "workload.h"
Family server_family() { return {nullptr, 0}; }
#include "workload.h"
Family queue_family() { return {nullptr, 0}; }
#include "workload.h"
Family sharing_family() { return {nullptr, 0}; }
#include "workload.h"
Family seed_family() { return {nullptr, 0}; }
#include "workload.h"
Family spaces_family() { return {nullptr, 0}; }
#include "workload.h"
Family shrink_family() { return {nullptr, 0}; }
#include "workload.h"
Family frame_family() { return {nullptr, 0}; }
#include "workload.h"
Family challenge_family() { return {nullptr, 0}; }
#include "workload.h"
Family memory_family() { return {nullptr, 0}; }
#include "workload.h"
Family trace_family() { return {nullptr, 0}; }
