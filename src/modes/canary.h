// Bytes that nobody should have written.
#ifndef HUMMOCK_MODES_CANARY_H
#define HUMMOCK_MODES_CANARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/annotate.h"

namespace hummock::modes {

using Words = uint64_t __attribute__((vector_size(16)));

template <class T>
__attribute__((always_inline)) HUMMOCK_READS_FORBIDDEN inline T read_as(const unsigned char* bytes) {
  T words;
  __builtin_memcpy(&words, bytes, sizeof words);
  return words;
}

// 0: all of them, 16 or more, are those of `line`. Of the last ones, which fill no line, some are looked at
// twice.
__attribute__((always_inline)) HUMMOCK_READS_FORBIDDEN inline Words others_among(const unsigned char* bytes,
                                                                                 Words line, size_t size) {
  Words other = (read_as<Words>(bytes) ^ line) | (read_as<Words>(bytes + size - 16) ^ line);
  if (size <= 32) return other;
  size_t at = 16;
  for (; at + 64 <= size; at += 64) {
    for (size_t i = 0; i < 64; i += 16) other |= read_as<Words>(bytes + at + i) ^ line;
  }
  for (; at + 16 < size; at += 16) other |= read_as<Words>(bytes + at) ^ line;
  return other;
}

inline bool is_any(Words words) {
  return (words[0] | words[1]) != 0;
}

constexpr Words line_of(unsigned char value) {
  return Words{value * 0x0101010101010101ull, value * 0x0101010101010101ull};
}

// The first byte that is not `value`, or `size`. Nobody may touch them: see base::Unwatched. Most often all
// are.
HUMMOCK_READS_FORBIDDEN inline size_t first_other(const unsigned char* bytes, unsigned char value,
                                                  size_t size) {
  if (size >= 16 && !is_any(others_among(bytes, line_of(value), size))) return size;
  size_t at = 0;
  while (at < size && bytes[at] == value) ++at;
  return at;
}

template <class T>
__attribute__((always_inline)) inline void write_as(unsigned char* bytes, T words) {
  __builtin_memcpy(bytes, &words, sizeof words);
}

// As memset, whose beginning takes longer than so few bytes. Of the last ones some are written twice.
inline void fill(void* memory, unsigned char value, size_t size) {
  auto* bytes = static_cast<unsigned char*>(memory);
  const Words line = line_of(value);
  if (size < 16) {
    const uint64_t word = line[0];
    if (size >= 8) return write_as(bytes, word), write_as(bytes + size - 8, word);
    for (size_t i = 0; i < size; ++i) bytes[i] = value;
    return;
  }
  write_as(bytes + size - 16, line);
  for (size_t at = 0; at + 16 < size; at += 16) {
    write_as(bytes + at, line);
    __asm__ volatile("" ::: "memory");  // else the compiler makes memset of it
  }
}

}  // namespace hummock::modes

#endif  // HUMMOCK_MODES_CANARY_H
