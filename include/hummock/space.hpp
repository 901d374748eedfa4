/* Deterministic spaces for C++17 and later, header-only over space.h; hummock.hpp includes it.
 *
 *   hummock::space                   owns a hummock_space_t
 *   hummock::space_memory_resource   std::pmr over a space; when it is full it throws, it never falls back */
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

/* Owns a space: moves, does not copy, ends its blocks with it. Which threads may use it is a matter of its
 * thread mode, see space.h. One that was moved from is empty, and has no memory to give. */
class space {
 public:
  /* Of that many bytes, its own records included, with the other options at their defaults: one thread
   * allocates. Throws std::bad_alloc. */
  explicit space(std::size_t bytes) : space(options_of(bytes)) {}
  /* `options.size` is filled in. Throws std::bad_alloc when memory is short, std::system_error with the
   * system's number for anything else: options that contradict each other, a property that is not to be had.
   */
  explicit space(hummock_space_options_t options) {
    options.size = sizeof options;
    handle_ = hummock_space_create(&options, &achieved_);
    if (handle_ != nullptr) return;
    if (errno == ENOMEM) throw std::bad_alloc();
    throw std::system_error(errno, std::generic_category(), "hummock::space");
  }
  /* Takes over one that was created, opened or attached; null gives an empty one. */
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

  /* At least `bytes`, aligned to `alignment` (a power of two), of this space alone. Constant time, and no
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
  /* realloc, for bytes alone: moves no objects. Null on failure, the block is then as it was. */
  [[nodiscard]] void* try_resize(void* block, std::size_t bytes) noexcept {
    return handle_ == nullptr ? nullptr : hummock_space_realloc(handle_, block, bytes);
  }

  std::size_t usable_size(const void* block) const noexcept {
    return block == nullptr ? 0 : hummock_space_usable_size(handle_, block);
  }
  bool contains(const void* address) const noexcept {
    return handle_ != nullptr && hummock_space_contains(handle_, address) != 0;
  }
  /* What it holds; zeros for an empty one. */
  hummock_space_stats_t stats() const noexcept {
    hummock_space_stats_t now = {};
    now.size = sizeof now;
    if (handle_ != nullptr) hummock_space_stats(handle_, &now);
    return now;
  }
  /* The HUMMOCK_SPACE_… bits that creation achieved; 0 for one that was taken over. */
  std::uint32_t achieved() const noexcept { return achieved_; }

  /* The handle stays the space's, or becomes the caller's. */
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

/* For std::pmr containers in a space, which must outlive them. Two are equal when they are of one space. */
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
