/* Deterministic spaces for C++17 and later, header-only over space.h; hummock.hpp includes it.
 *
 *   hummock::space                   owns a hummock_space_t
 *   hummock::space_memory_resource   std::pmr over a space; throws when the space is full */
#ifndef HUMMOCK_SPACE_HPP
#define HUMMOCK_SPACE_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <system_error>
#include <utility>

#include "space.h"

namespace hummock {

/* Owns a space. It can be moved, not copied, and its end frees all blocks. Its thread mode says which threads
 * may use it; see space.h. A space that was moved from is empty and allocates nothing. */
class space {
 public:
  /* A space of `bytes`, with its own records, and the default for all other options: one thread allocates.
   * Throws std::bad_alloc. */
  explicit space(std::size_t bytes) : space(options_of(bytes)) {}
  /* Fills in `options.size`. Throws std::bad_alloc when memory is short, and std::system_error with the error
   * number for anything else: options that contradict each other, or a required property that the system
   * cannot provide. */
  explicit space(hummock_space_options_t options) {
    options.size = sizeof options;
    handle_ = hummock_space_create(&options, &achieved_);
    if (handle_ != nullptr) return;
    if (errno == ENOMEM) throw std::bad_alloc();
    throw std::system_error(errno, std::generic_category(), "hummock::space");
  }
  /* Takes over a space that was created, opened or attached; null makes an empty one. */
  explicit space(hummock_space_t* owned) noexcept : handle_(owned) {}
  space(space&& other) noexcept : achieved_(other.achieved_), handle_(other.release()) {}
  space& operator=(space&& other) noexcept {
    if (this == &other) return *this;
    hummock_space_destroy(handle_);
    achieved_ = other.achieved_;
    handle_ = other.release();
    return *this;
  }
  ~space() { hummock_space_destroy(handle_); }

  /* At least `bytes`, aligned to `alignment` (a power of two), from this space only. Constant time, and no
   * system call. */
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = natural_alignment) {
    void* block = try_allocate(bytes, alignment);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  [[nodiscard]] void* try_allocate(std::size_t bytes, std::size_t alignment = natural_alignment) noexcept {
    if (handle_ == nullptr) return nullptr;
    if (alignment <= natural_alignment) return hummock_space_malloc(handle_, bytes);
    return hummock_space_memalign(handle_, alignment, bytes);
  }
  /* Null does nothing. */
  void deallocate(void* block) noexcept {
    if (block != nullptr) hummock_space_free(handle_, block);
  }
  /* realloc. It moves bytes, not objects. Returns null on failure and leaves the block untouched. */
  [[nodiscard]] void* try_resize(void* block, std::size_t bytes) noexcept {
    return handle_ == nullptr ? nullptr : hummock_space_realloc(handle_, block, bytes);
  }

  std::size_t usable_size(const void* block) const noexcept {
    return block == nullptr ? 0 : hummock_space_usable_size(handle_, block);
  }
  bool contains(const void* address) const noexcept {
    return handle_ != nullptr && hummock_space_contains(handle_, address) != 0;
  }
  /* What the space holds now; zeros for an empty one. */
  hummock_space_stats_t stats() const noexcept {
    hummock_space_stats_t now = {};
    now.size = sizeof now;
    if (handle_ != nullptr) hummock_space_stats(handle_, &now);
    return now;
  }
  /* The HUMMOCK_SPACE_… bits of the properties it has; 0 for a space that was taken over. */
  std::uint32_t achieved() const noexcept { return achieved_; }

  /* get: the space keeps the handle. release: the caller owns it from now on. */
  hummock_space_t* get() const noexcept { return handle_; }
  [[nodiscard]] hummock_space_t* release() noexcept { return std::exchange(handle_, nullptr); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  static constexpr std::size_t natural_alignment = 16;

  static hummock_space_options_t options_of(std::size_t bytes) noexcept {
    hummock_space_options_t options = {};
    options.initial = bytes;
    return options;
  }

  std::uint32_t achieved_ = 0;
  hummock_space_t* handle_ = nullptr;
};

/* For std::pmr containers in a space, which must outlive them. Two are equal if they have the same space. */
class space_memory_resource : public std::pmr::memory_resource {
 public:
  explicit space_memory_resource(space& where) noexcept : space_(&where) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return space_->allocate(bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override { space_->deallocate(block); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
#ifdef __cpp_rtti
    const auto* same_kind = dynamic_cast<const space_memory_resource*>(&other);
    return same_kind != nullptr && same_kind->space_ == space_;
#else
    return this == &other;
#endif
  }

  space* space_;
};

}  // namespace hummock

#endif /* HUMMOCK_SPACE_HPP */
