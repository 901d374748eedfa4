// 113 short programs that misuse memory. Each does one wrong thing, goes on for a few calls and ends.
//
// A case says on standard error where it is; the runner reads off from the order of the lines when the
// allocator told of the misuse: by the very call, at a later one, or at the end.
#ifndef HUMMOCK_TESTS_SECURITY_SUITE_H
#define HUMMOCK_TESTS_SECURITY_SUITE_H

#include "../battery/battery.h"
#include "../battery/probation.h"

namespace battery {

extern const Cases security_double_free;
extern const Cases security_invalid_free;
extern const Cases security_overflow;
extern const Cases security_after_free;

inline constexpr size_t kTiny = 16;
inline constexpr size_t kSmall = 64;
inline constexpr size_t kMedium = 3 * KiB;
inline constexpr size_t kBig = 20 * KiB;
inline constexpr size_t kLarge = 200 * KiB;
inline constexpr size_t kHuge = 40 * MiB;

// Where the case is from here on: "call" (the wrong call), "write", "read" (the program's own accesses),
// "free" (of the block that was damaged), "later", "end". What a read found: "saw …".
void stage(const char* name);

template <class Wrong>
void wrong(Wrong act) {
  stage("call");
  act();
  stage("later");
}

// A block of `size` with live ones of its size before and behind it; of huge ones there is no other.
void* block(size_t size);

// What most programs do after a mistake: a few blocks of the size come and go.
void go_on(size_t size);

// As many blocks of `size` as a case takes to have many.
constexpr int many(size_t size) {
  return size <= 8 * KiB ? 200 : size <= 1 * MiB ? 12 : 3;
}

}  // namespace battery

#endif  // HUMMOCK_TESTS_SECURITY_SUITE_H
