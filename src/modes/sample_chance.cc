// Logarithm and exponential are worked out here: libm is no part of libc.
#include "modes/sample_chance.h"

#include <string.h>

#include "hummock/profile.h"

namespace hummock::modes::sampling {
namespace {

constexpr double kLn2 = 0.693147180559945309417;

// xorshift64*, whose upper bits are the good ones.
uint64_t next_random(uint64_t* state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * 0x2545f4914f6cdd1du;
}

// -ln(u) for 0 < u <= 1, exact to 1e-12: u = m × 2^e with m near 1, and the series of artanh for ln m.
double minus_log(double u) {
  uint64_t bits;
  memcpy(&bits, &u, sizeof bits);
  int exponent = static_cast<int>(bits >> 52) - 1022;
  bits = (bits & ((uint64_t{1} << 52) - 1)) | (uint64_t{1022} << 52);
  double m;
  memcpy(&m, &bits, sizeof m);
  if (m < 0.7071) {
    m *= 2;
    --exponent;
  }
  const double z = (m - 1) / (m + 1), square = z * z;
  double sum = 0;
  for (int k = 15; k > 0; k -= 2) sum = sum * square + 1.0 / k;
  return -(2 * z * sum + exponent * kLn2);
}

// 1 - e^-x, exact to 1e-13 of itself: of x halved until the series is short, and doubled again.
double chance_within(double x) {
  if (x > 45) return 1;
  unsigned halved = 0;
  while (x > 0.25) {
    x /= 2;
    ++halved;
  }
  double sum = 0;
  for (int k = 10; k > 0; --k) sum = x / k * (1 - sum);
  for (; halved != 0; --halved) sum *= 2 - sum;
  return sum;
}

uint64_t rounded(double number) {
  constexpr double kMost = 9e18;
  if (number >= kMost) return static_cast<uint64_t>(kMost);
  const auto whole = static_cast<uint64_t>(number);
  return whole + (number - static_cast<double>(whole) >= 0.5 ? 1 : 0);
}

}  // namespace

uint64_t next_count(uint64_t* random, uint64_t mean) {
  if (mean <= 1) return 0;
  const double u = static_cast<double>((next_random(random) >> 11) + 1) * 0x1p-53;
  return static_cast<uint64_t>(minus_log(u) * static_cast<double>(mean)) + 1;
}

Weight weight_of(size_t size, uint64_t mean) {
  if (mean <= 1) return {size, HUMMOCK_PROFILE_BLOCK};
  const double bytes = size == 0 ? 1 : static_cast<double>(size);
  const double chance = chance_within(bytes / static_cast<double>(mean));
  return {rounded(bytes / chance), rounded(HUMMOCK_PROFILE_BLOCK / chance)};
}

}  // namespace hummock::modes::sampling
