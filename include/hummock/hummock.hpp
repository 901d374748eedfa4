/* Hummock for C++17 and later, header-only over hummock.h.
 *
 *   hummock::heap                a first-class heap; its end frees all its blocks
 *   hummock::memory_resource     std::pmr over a heap, or over the threads' own heaps
 *   hummock::allocator<T>        stateless, for containers: std::vector<int, hummock::allocator<int>>
 *   hummock::heap_allocator<T>   for containers in one heap
 *   hummock::unique_ptr<T>       and make_unique: objects in Hummock's memory, or in a heap
 *   hummock::space               and space_memory_resource: deterministic spaces, where the library has them;
 *                                see space.hpp
 *
 * When memory is short these throw std::bad_alloc, and std::bad_array_new_length for a size that overflows;
 * noexcept functions return null. The classes hold only handles. For threads, cost and misuse the same holds
 * as for the C functions. You do not need this header to make a program's new and delete Hummock's: link
 * hummock, or preload it. */
#ifndef HUMMOCK_HUMMOCK_HPP
#define HUMMOCK_HUMMOCK_HPP

#include <cstddef>
#include <limits>
#include <memory>
#include <memory_resource>
#include <new>
#include <type_traits>
#include <utility>

#include "hummock.h"
#include "space.hpp"

namespace hummock {

namespace detail {

/* What hummock_malloc aligns every block to. */
inline constexpr std::size_t natural_alignment = 16;

/* A null `heap` means the calling thread's own, as in hummock.h. */
inline void* take(hummock_heap_t* heap, std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment <= natural_alignment) return hummock_heap_malloc(heap, bytes);
  return hummock_heap_memalign(heap, alignment, bytes);
}

inline void* take_or_throw(hummock_heap_t* heap, std::size_t bytes, std::size_t alignment) {
  void* block = take(heap, bytes, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

/* Memory for `count` objects. */
template <class T>
T* take_array(hummock_heap_t* heap, std::size_t count) {
  if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_array_new_length();
  return static_cast<T*>(take_or_throw(heap, count * sizeof(T), alignof(T)));
}

}  // namespace detail

/* ---- heap ------------------------------------------------------------------------------------- */

/* Owns a hummock_heap_t: a set of blocks that you can free one by one. The end of the heap frees the rest
 * together, without running destructors. Any thread may use it, but nobody may while it is moved, destroyed
 * or assigned to. A heap that was moved from is empty and allocates nothing. */
class heap {
 public:
  /* Throws std::bad_alloc. */
  heap() : handle_(hummock_heap_create()) {
    if (handle_ == nullptr) throw std::bad_alloc();
  }
  /* Takes over the result of hummock_heap_create; null makes an empty heap. */
  explicit heap(hummock_heap_t* owned) noexcept : handle_(owned) {}
  heap(heap&& other) noexcept : handle_(other.release()) {}
  heap& operator=(heap&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~heap() { hummock_heap_destroy(handle_); }

  /* At least `bytes`, aligned to `alignment` (a power of two). Cost: one lock. */
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = detail::natural_alignment) {
    void* block = try_allocate(bytes, alignment);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  [[nodiscard]] void* try_allocate(std::size_t bytes,
                                   std::size_t alignment = detail::natural_alignment) noexcept {
    return handle_ == nullptr ? nullptr : detail::take(handle_, bytes, alignment);
  }
  /* Null does nothing. A block of another heap is misuse, and is reported. */
  void deallocate(void* block) noexcept { hummock_heap_free(handle_, block); }
  /* realloc in this heap. It moves bytes, not objects. Returns null on failure and leaves the block
   * untouched.
   */
  [[nodiscard]] void* try_resize(void* block, std::size_t bytes) noexcept {
    return handle_ == nullptr ? nullptr : hummock_heap_realloc(handle_, block, bytes);
  }

  /* What the heap holds now; zeros for an empty heap. */
  hummock_heap_stats_t stats() const noexcept {
    hummock_heap_stats_t now = {};
    now.size = sizeof now;
    if (handle_ != nullptr) hummock_heap_stats(handle_, &now);
    return now;
  }

  /* `hummock stats` prints the name beside the heap's figures. */
  void set_name(const char* name) noexcept {
    if (handle_ != nullptr) hummock_heap_set_name(handle_, name);
  }

  /* Calls visit(block, usable size) for each live block until it returns false; it must not throw. Returns
   * false where there is no walk, as in checked mode. */
  template <class Visit>
  bool walk(Visit visit) const noexcept {
    const auto pass_on = [](void* context, void* block, std::size_t room) {
      return (*static_cast<Visit*>(context))(block, room) ? 1 : 0;
    };
    return handle_ != nullptr && hummock_heap_walk(handle_, pass_on, &visit) == 0;
  }

  /* get: the heap keeps the handle. release: the caller owns it from now on. */
  hummock_heap_t* get() const noexcept { return handle_; }
  [[nodiscard]] hummock_heap_t* release() noexcept { return std::exchange(handle_, nullptr); }
  /* Destroys the heap that it owns, and takes over `owned`. */
  void reset(hummock_heap_t* owned = nullptr) noexcept {
    hummock_heap_destroy(std::exchange(handle_, owned));
  }
  explicit operator bool() const noexcept { return handle_ != nullptr; }
  friend void swap(heap& a, heap& b) noexcept { std::swap(a.handle_, b.handle_); }

 private:
  hummock_heap_t* handle_;
};

/* ---- memory_resource -------------------------------------------------------------------------- */

/* For std::pmr containers. Two are equal, so that they may free each other's blocks, if they have the same
 * heap. It does not own the heap, which must outlive all that was allocated. If the elements need no
 * destructor, it is quickest to destroy the heap instead of the containers. */
class memory_resource : public std::pmr::memory_resource {
 public:
  /* Over the threads' own heaps, as hummock_malloc. */
  memory_resource() noexcept = default;
  explicit memory_resource(heap& where) noexcept : heap_(where.get()) {}
  explicit memory_resource(hummock_heap_t* where) noexcept : heap_(where) {}

  hummock_heap_t* get() const noexcept { return heap_; }

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return detail::take_or_throw(heap_, bytes, alignment);
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override { hummock_heap_free(heap_, block); }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
#ifdef __cpp_rtti
    const auto* same_kind = dynamic_cast<const memory_resource*>(&other);
    return same_kind != nullptr && same_kind->heap_ == heap_;
#else
    return this == &other;  // without RTTI nothing more is known
#endif
  }

  hummock_heap_t* heap_ = nullptr;
};

/* ---- allocators ------------------------------------------------------------------------------- */

/* Replaces std::allocator, and uses Hummock's memory whatever the program's malloc is. All are equal. */
template <class T>
class allocator {
 public:
  using value_type = T;
  using is_always_equal = std::true_type;
  using propagate_on_container_move_assignment = std::true_type;

  allocator() noexcept = default;
  template <class U>
  allocator(const allocator<U>&) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) { return detail::take_array<T>(nullptr, count); }
  void deallocate(T* block, std::size_t) noexcept { hummock_free(block); }
#ifdef __cpp_lib_allocate_at_least
  /* As many as fit in the size class. */
  [[nodiscard]] std::allocation_result<T*, std::size_t> allocate_at_least(std::size_t count) {
    T* block = allocate(count);
    return {block, hummock_usable_size(block) / sizeof(T)};
  }
#endif
  template <class U>
  friend bool operator==(const allocator&, const allocator<U>&) noexcept {
    return true;
  }
  template <class U>
  friend bool operator!=(const allocator&, const allocator<U>&) noexcept {
    return false;
  }
};

/* For containers with all elements in one heap, which must outlive them. Two are equal if they have the same
 * heap.
 *
 * A container that is moved or swapped takes its allocator along with its blocks. A container that is
 * assigned a copy stays in its own heap. A new copy is made in the heap of the original. */
template <class T>
class heap_allocator {
 public:
  using value_type = T;
  using is_always_equal = std::false_type;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  heap_allocator(heap& where) noexcept : heap_(where.get()) {}
  explicit heap_allocator(hummock_heap_t* where) noexcept : heap_(where) {}
  template <class U>
  heap_allocator(const heap_allocator<U>& other) noexcept : heap_(other.get()) {}

  [[nodiscard]] T* allocate(std::size_t count) { return detail::take_array<T>(heap_, count); }
  void deallocate(T* block, std::size_t) noexcept { hummock_heap_free(heap_, block); }

  hummock_heap_t* get() const noexcept { return heap_; }
  template <class U>
  friend bool operator==(const heap_allocator& a, const heap_allocator<U>& b) noexcept {
    return a.get() == b.get();
  }
  template <class U>
  friend bool operator!=(const heap_allocator& a, const heap_allocator<U>& b) noexcept {
    return a.get() != b.get();
  }

 private:
  hummock_heap_t* heap_;
};

/* ---- unique_ptr ------------------------------------------------------------------------------- */

/* Destroys an object and frees its block, in any heap. A pointer to a base may own an object of a derived
 * type if the base's destructor is virtual. */
template <class T>
struct deleter {
  deleter() noexcept = default;
  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*> &&
                                              (std::has_virtual_destructor_v<T> ||
                                               std::is_same_v<std::remove_cv_t<U>, std::remove_cv_t<T>>)>>
  deleter(const deleter<U>&) noexcept {}

  void operator()(T* object) const noexcept {
    void* block;  // the whole object begins here; T may be a later part of it
    if constexpr (std::is_polymorphic_v<T>) {
      block = const_cast<void*>(dynamic_cast<const volatile void*>(object));
    } else {
      block = const_cast<std::remove_cv_t<T>*>(object);
    }
    object->~T();
    hummock_free(block);
  }
};

/* For an array. It knows the length, and destroys the elements from the last to the first. */
template <class T>
struct deleter<T[]> {
  std::size_t count = 0;

  void operator()(T* first) const noexcept {
    for (std::size_t i = count; i != 0; --i) first[i - 1].~T();
    hummock_free(const_cast<std::remove_cv_t<T>*>(first));
  }
};

template <class T>
using unique_ptr = std::unique_ptr<T, deleter<T>>;

namespace detail {

template <class T, class... Arguments>
unique_ptr<T> make(hummock_heap_t* heap, Arguments&&... arguments) {
  void* block = take_or_throw(heap, sizeof(T), alignof(T));
  struct Guard {
    void* block;
    ~Guard() { hummock_free(block); }
  } guard{block};  // until the constructor has returned
  T* object = ::new (block) T(std::forward<Arguments>(arguments)...);
  guard.block = nullptr;
  return unique_ptr<T>(object);
}

template <class Element>
unique_ptr<Element[]> make_array(hummock_heap_t* heap, std::size_t count) {
  struct Guard {
    Element* first;
    std::size_t made = 0;
    ~Guard() {
      if (first != nullptr) deleter<Element[]>{made}(first);
    }
  } guard{take_array<Element>(heap, count)};
  for (; guard.made < count; ++guard.made) ::new (static_cast<void*>(guard.first + guard.made)) Element();
  return unique_ptr<Element[]>(std::exchange(guard.first, nullptr), deleter<Element[]>{count});
}

template <class T>
inline constexpr bool is_open_array = std::is_array_v<T>&& std::extent_v<T> == 0;

}  // namespace detail

/* make_unique<T>(arguments…), in the calling thread's heap; make_unique<T>(heap, arguments…), in that one;
 * make_unique<T[]>(count) and make_unique<T[]>(heap, count) value-initialise the elements. Destroy the object
 * before its heap. If a constructor throws, the exception passes through and all memory is freed. */
template <class T, class... Arguments, class = std::enable_if_t<!std::is_array_v<T>>>
[[nodiscard]] unique_ptr<T> make_unique(Arguments&&... arguments) {
  return detail::make<T>(nullptr, std::forward<Arguments>(arguments)...);
}
template <class T, class... Arguments, class = std::enable_if_t<!std::is_array_v<T>>>
[[nodiscard]] unique_ptr<T> make_unique(heap& where, Arguments&&... arguments) {
  return detail::make<T>(where.get(), std::forward<Arguments>(arguments)...);
}
template <class T, class = std::enable_if_t<detail::is_open_array<T>>>
[[nodiscard]] unique_ptr<T> make_unique(std::size_t count) {
  return detail::make_array<std::remove_extent_t<T>>(nullptr, count);
}
template <class T, class = std::enable_if_t<detail::is_open_array<T>>>
[[nodiscard]] unique_ptr<T> make_unique(heap& where, std::size_t count) {
  return detail::make_array<std::remove_extent_t<T>>(where.get(), count);
}

}  // namespace hummock

#endif /* HUMMOCK_HUMMOCK_HPP */
