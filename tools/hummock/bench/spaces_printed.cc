// The figures of "RTX64 Local Memory Performance Comparison", as that document prints them: an Intel Core
// i9-7900X at 3.30 GHz, zeroing of memory off in 4.x. Another machine and another clock: they stand beside
// the measured ones to be seen, not to be divided by.
#include <nlohmann/json.hpp>

#include "bench/spaces_bench.h"

namespace hummock::tool {
namespace {

struct Printed {
  unsigned size;
  double nanoseconds[3];
};

constexpr Printed kAllocate[] = {
    {4194304, {9738.229, 375435.3, 1151.443}}, {2097152, {5387.196, 186799.3, 773.4124}},
    {1048576, {3726.73, 94310.61, 627.3231}},  {524288, {3403.309, 48406.34, 567.5217}},
    {262144, {2527.113, 23853.55, 588.6057}},  {131072, {2267.923, 12047.88, 488.2693}},
    {65536, {1786.178, 6288.335, 413.2421}},   {32768, {1109.033, 3603.063, 387.8605}},
    {16384, {1019.03, 2401.609, 177.5531}},    {8192, {985.0308, 1843.24, 91.58333}},
    {4096, {896.8472, 1505.717, 64.33333}},    {2048, {429.5598, 1097.725, 64.51812}},
    {1024, {237.5393, 931.2101, 81.39553}},    {512, {143.4559, 785.9831, 49.82428}},
    {256, {119.7506, 749.1413, 90.31643}},     {128, {85.3901, 706.1655, 25.75604}},
    {64, {40.21377, 699.7458, 23.15399}},      {32, {42.90278, 697.8684, 23.01449}},
    {16, {35.19143, 696.0556, 23.38768}},
};
constexpr Printed kFree[] = {
    {4194304, {41126.05, 1889.739, 993.7319}}, {2097152, {21528.16, 1444.077, 818.093}},
    {1048576, {11778.47, 1154.293, 581.1775}}, {524288, {2815.152, 1147.034, 413.9511}},
    {262144, {2023.338, 847.3418, 275.7748}},  {131072, {1345.579, 863.125, 204.712}},
    {65536, {977.5628, 802.4106, 224.3593}},   {32768, {857.747, 786.0803, 203.5175}},
    {16384, {717.5637, 855.7935, 116.6129}},   {8192, {440.0477, 769.9921, 103.4777}},
    {4096, {267.1546, 746.5531, 51.17633}},    {2048, {147.0109, 747.2687, 38.94867}},
    {1024, {86.96014, 704.9976, 26.68418}},    {512, {57.83696, 685.4638, 26.00966}},
    {256, {24.46981, 667.1135, 26.72886}},     {128, {21.53019, 670.1359, 25.95652}},
    {64, {20.58575, 682.6021, 26.64674}},      {32, {20.80495, 703.9994, 25.91908}},
    {16, {23.79408, 704.8333, 26.80978}},
};

template <std::size_t kCount>
Json rows_of(const Printed (&table)[kCount]) {
  Json rows = Json::array();
  for (const Printed& row : table) rows.push_back({{"size", row.size}, {"nanoseconds", row.nanoseconds}});
  return rows;
}

}  // namespace

Json printed_figures() {
  return {{"title", "RTX64 Local Memory Performance Comparison"},
          {"machine", "Intel Core i9-7900X CPU @ 3.30GHz"},
          {"columns", {"Windows", "RTX64 3.x", "RTX64 4.x"}},
          {"malloc", rows_of(kAllocate)},
          {"free", rows_of(kFree)}};
}

}  // namespace hummock::tool
