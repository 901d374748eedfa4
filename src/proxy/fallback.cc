// The fallback of a proxy that names none: the process's malloc. It knows the size asked for by two words at
// the end of the block's room, so nothing is ever read in front of a block.
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "hummock/proxy.h"

namespace {

// In the last 16 bytes of a block's room, less what makes them aligned.
struct Note {
  size_t bytes;
  size_t check;
};
constexpr size_t kNaturalAlign = alignof(max_align_t);  // 8 on 32-bit ARM

char* note_of(void* block, size_t room) {
  return static_cast<char*>(block) + (room & ~size_t{7}) - sizeof(Note);
}

// Differs from block to block, so that a note that was copied elsewhere does not count.
size_t check_of(const void* block, size_t bytes) {
  return (reinterpret_cast<uintptr_t>(block) ^ bytes) * 0x9E3779B97F4A7C15u + 0x5bf03635u;
}

void* noted(void* block, size_t bytes) {
  if (block == nullptr) return nullptr;
  const Note note = {bytes, check_of(block, bytes)};
  memcpy(note_of(block, malloc_usable_size(block)), &note, sizeof note);
  return block;
}

bool with_note(size_t bytes, size_t* total) {
  // 7 more: a room that is no multiple of 8 (as under a sanitizer) is cut to one.
  if (!__builtin_add_overflow(bytes, sizeof(Note) + 7, total)) return true;
  errno = ENOMEM;
  return false;
}

}  // namespace

void* hummock_proxy_default_allocate(void*, size_t bytes, size_t alignment) noexcept {
  size_t total;
  if (!with_note(bytes, &total)) return nullptr;
  return noted(alignment <= kNaturalAlign ? malloc(total) : memalign(alignment, total), bytes);
}

void hummock_proxy_default_release(void*, void* block) noexcept {
  free(block);
}

void* hummock_proxy_default_reallocate(void* context, void* block, size_t bytes, size_t alignment) noexcept {
  size_t total;
  if (!with_note(bytes, &total)) return nullptr;
  if (alignment <= kNaturalAlign) return noted(realloc(block, total), bytes);
  void* moved = hummock_proxy_default_allocate(context, bytes, alignment);
  if (moved == nullptr) return nullptr;
  const size_t room = malloc_usable_size(block);
  memcpy(moved, block, room < bytes ? room : bytes);
  free(block);
  return moved;
}

size_t hummock_proxy_default_usable_size(void*, void* block) noexcept {
  const size_t room = malloc_usable_size(block);
  if (room < sizeof(Note)) return room;
  Note note;
  memcpy(&note, note_of(block, room), sizeof note);
  return note.bytes <= room && note.check == check_of(block, note.bytes) ? note.bytes : room;
}
