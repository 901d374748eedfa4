// hummock.hpp: each type means what its comment says, under the library's own containers' demands.
#include <doctest/doctest.h>
#include <stdint.h>
#include <hummock/hummock.hpp>

#include <deque>
#include <list>
#include <map>
#include <memory_resource>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "support/figures.h"
#include "support/support.h"

namespace {

size_t live_blocks(const hummock::heap& heap) {
  return heap.stats().live_blocks;
}

struct Counted {
  explicit Counted(int number = 0) : value(number) {
    if (throw_at != 0 && made + 1 == throw_at) throw 7;
    ++made;
  }
  ~Counted() {
    ++ended;
    last_ended = this;
  }
  int value;
  static inline int made, ended, throw_at;
  static inline Counted* last_ended;
  static void forget() { made = ended = throw_at = 0; }
};

struct alignas(256) Wide {
  char bytes[300];
};
struct First {
  virtual ~First() = default;
  long a = 1;
};
struct Second {
  virtual ~Second() = default;
  long b = 2;
};
struct Both : First, Second {
  explicit Both(int* flag) : ended(flag) {}
  ~Both() override { *ended = 1; }
  int* ended;
};

template <class T>
constexpr bool traits_are_an_allocators =
    std::is_same_v<typename std::allocator_traits<T>::value_type, typename T::value_type>;

}  // namespace

TEST_CASE("a heap has a name, and its blocks can be walked") {
  hummock::heap heap;
  heap.set_name("walked");
  void* one = heap.try_allocate(100);
  std::size_t blocks = 0, bytes = 0;
  CHECK(heap.walk([&](void* block, std::size_t room) {
    CHECK(block == one);
    ++blocks;
    bytes += room;
    return true;
  }));
  CHECK(blocks == 1);
  CHECK(bytes >= 100);
}

TEST_CASE("heap: blocks, alignment, statistics, the end") {
  hummock::heap heap;
  CHECK(heap);
  CHECK(live_blocks(heap) == 0);
  for (size_t align = 1; align <= 8192; align *= 2)
    CHECK(support::is_aligned(heap.allocate(100, align), align));
  CHECK(live_blocks(heap) == 14);
  void* block = heap.allocate(1000);
  block = heap.try_resize(block, 5000);
  CHECK(block != nullptr);
  heap.deallocate(block);
  heap.deallocate(nullptr);
  CHECK(live_blocks(heap) == 14);
  CHECK(heap.try_allocate(SIZE_MAX) == nullptr);
  CHECK_THROWS_AS((void)heap.allocate(SIZE_MAX), std::bad_alloc);
  heap.reset();
  CHECK(!heap);
  CHECK(live_blocks(heap) == 0);
  CHECK(heap.try_allocate(10) == nullptr);
  CHECK(heap.try_resize(nullptr, 10) == nullptr);
  CHECK_THROWS_AS((void)heap.allocate(10), std::bad_alloc);
}

TEST_CASE("heap: moves, swaps, gives its handle away") {
  static_assert(!std::is_copy_constructible_v<hummock::heap> && !std::is_copy_assignable_v<hummock::heap>);
  static_assert(std::is_nothrow_move_constructible_v<hummock::heap> &&
                std::is_nothrow_move_assignable_v<hummock::heap>);
  const size_t before = support::figures().heaps;
  {
    hummock::heap one;
    (void)one.allocate(10);
    hummock::heap two = std::move(one);
    CHECK(!one);
    CHECK(live_blocks(two) == 1);
    hummock::heap three;
    three = std::move(two);
    CHECK(live_blocks(three) == 1);
    auto& same = three;
    three = std::move(same);
    CHECK(live_blocks(three) == 1);
    swap(one, three);
    CHECK(live_blocks(one) == 1);
    hummock_heap_t* handle = one.release();
    hummock::heap four(handle);
    CHECK(four.get() == handle);
    CHECK(support::figures().heaps == before + 1);
  }
  CHECK(support::figures().heaps == before);
}

TEST_CASE("memory_resource: equality and errors") {
  hummock::heap heap, other;
  hummock::memory_resource plain, also_plain, in_heap(heap), also_in_heap(heap.get()), elsewhere(other);
  CHECK(plain.is_equal(also_plain));
  CHECK(in_heap.is_equal(also_in_heap));
  CHECK(!in_heap.is_equal(elsewhere));
  CHECK(!in_heap.is_equal(plain));
  CHECK(!plain.is_equal(*std::pmr::new_delete_resource()));
  const volatile size_t most = SIZE_MAX;  // the compiler is not to know
  CHECK_THROWS_AS((void)plain.allocate(most), std::bad_alloc);
  CHECK_THROWS_AS((void)in_heap.allocate(most - 100, 64), std::bad_alloc);
  for (size_t align = 1; align <= 65536; align *= 4) {
    for (std::pmr::memory_resource* each : {static_cast<std::pmr::memory_resource*>(&plain),
                                            static_cast<std::pmr::memory_resource*>(&in_heap)}) {
      void* block = each->allocate(33, align);
      CHECK(support::is_aligned(block, align));
      each->deallocate(block, 33, align);
    }
  }
  CHECK(live_blocks(heap) == 0);
  void* from_one = in_heap.allocate(50);
  also_in_heap.deallocate(from_one, 50);
  CHECK(live_blocks(heap) == 0);
}

TEST_CASE("pmr containers, a soak") {
  hummock::heap heap;
  hummock::memory_resource resource(heap);
  {
    support::Random random(support::run_seed());
    std::pmr::map<std::pmr::string, std::pmr::vector<int>> tree(&resource);
    std::pmr::unordered_map<int, std::pmr::list<std::pmr::string>> table(&resource);
    std::pmr::deque<std::pmr::string> queue(&resource);
    const size_t rounds = support::scaled(50000, 2000);
    for (size_t i = 0; i < rounds; ++i) {
      const auto key = static_cast<int>(random.below(500));
      std::pmr::string text(random.below(200), 'a', &resource);
      auto& numbers = tree[text];
      numbers.resize(random.below(100), key);
      if (random.one_in(3)) tree.erase(tree.begin());
      table[key].push_back(text);
      if (random.one_in(5)) table.erase(static_cast<int>(random.below(500)));
      queue.push_back(std::move(text));
      if (queue.size() > 300) queue.pop_front();
    }
    CHECK(live_blocks(heap) > 0);
    auto copy = tree;
    CHECK(copy.get_allocator().resource() == std::pmr::get_default_resource());
    CHECK(copy == tree);
  }
  CHECK(live_blocks(heap) == 0);
}

TEST_CASE("pmr containers of several threads over the threads' own heaps") {
  static hummock::memory_resource resource;
  std::vector<std::thread> crew;
  for (int t = 0; t < 4; ++t) {
    crew.emplace_back([t] {
      support::Random random(support::run_seed() + static_cast<uint64_t>(t));
      std::pmr::vector<std::pmr::string> texts(&resource);
      for (size_t i = 0; i < support::scaled(20000, 1000); ++i) {
        texts.emplace_back(random.below(300), 'x');
        if (texts.size() > 100) texts.erase(texts.begin() + static_cast<long>(random.below(100)));
      }
    });
  }
  for (auto& thread : crew) thread.join();
}

TEST_CASE("allocator: stateless") {
  using Allocator = hummock::allocator<int>;
  using Traits = std::allocator_traits<Allocator>;
  static_assert(traits_are_an_allocators<Allocator>);
  static_assert(std::is_empty_v<Allocator> && Traits::is_always_equal::value);
  static_assert(std::is_nothrow_move_assignable_v<std::vector<int, Allocator>>);
  static_assert(std::is_same_v<Traits::rebind_alloc<Wide>, hummock::allocator<Wide>>);
  CHECK(Allocator() == hummock::allocator<char>());
  CHECK(!(Allocator() != hummock::allocator<char>()));
  std::vector<int, Allocator> numbers;
  for (int i = 0; i < 10000; ++i) numbers.push_back(i);
  CHECK(hummock_usable_size(numbers.data()) >= numbers.capacity() * sizeof(int));
  std::list<Wide, hummock::allocator<Wide>> wide(20);
  for (const Wide& each : wide) CHECK(support::is_aligned(&each, 256));
  std::map<int, std::string, std::less<int>, hummock::allocator<std::pair<const int, std::string>>> tree;
  for (int i = 0; i < 1000; ++i) tree[i % 100] = std::to_string(i);
  CHECK(tree.size() == 100);
  const auto shared = std::allocate_shared<Counted>(hummock::allocator<Counted>(), 5);
  CHECK(shared->value == 5);
  CHECK_THROWS_AS((void)hummock::allocator<long>().allocate(SIZE_MAX / 2), std::bad_array_new_length);
  CHECK_THROWS_AS((void)hummock::allocator<char>().allocate(SIZE_MAX / 4 * 3), std::bad_alloc);
  CHECK_THROWS_AS((void)hummock::allocator<Wide>().allocate(SIZE_MAX / 512), std::bad_alloc);
}

TEST_CASE("heap_allocator: where containers stand after copies, moves and swaps") {
  using Vector = std::vector<int, hummock::heap_allocator<int>>;
  using Traits = std::allocator_traits<hummock::heap_allocator<int>>;
  static_assert(!Traits::is_always_equal::value && !Traits::propagate_on_container_copy_assignment::value);
  static_assert(std::is_nothrow_move_assignable_v<Vector>);
  static_assert(!std::is_default_constructible_v<hummock::heap_allocator<int>>);
  hummock::heap a, b;
  {
    Vector in_a(1000, 1, a), in_b(2000, 2, b);
    CHECK(in_a.get_allocator() == hummock::heap_allocator<char>(a));
    CHECK(in_a.get_allocator() != in_b.get_allocator());
    Vector copy = in_a;
    CHECK(copy.get_allocator().get() == a.get());
    copy = in_b;  // its elements, in its own heap
    CHECK(copy.get_allocator().get() == a.get());
    CHECK(copy == in_b);
    const int* data = in_b.data();
    copy = std::move(in_b);  // the blocks, and their heap with them
    CHECK(copy.data() == data);
    CHECK(copy.get_allocator().get() == b.get());
    swap(copy, in_a);
    CHECK(in_a.data() == data);
    CHECK(in_a.get_allocator().get() == b.get());
    CHECK(copy.get_allocator().get() == a.get());
    copy.assign(3000, 5);
    in_a.assign(30, 5);
  }
  CHECK(live_blocks(a) == 0);
  CHECK(live_blocks(b) == 0);
  std::set<int, std::less<int>, hummock::heap_allocator<int>> tree{std::less<int>(),
                                                                   hummock::heap_allocator<int>(a)};
  for (int i = 0; i < 500; ++i) tree.insert(i);
  CHECK(live_blocks(a) >= 500);
  CHECK_THROWS_AS((void)hummock::heap_allocator<long>(a).allocate(SIZE_MAX / 2), std::bad_array_new_length);
}

TEST_CASE("unique_ptr") {
  static_assert(sizeof(hummock::unique_ptr<int>) == sizeof(int*));
  Counted::forget();
  hummock::heap heap;
  {
    auto one = hummock::make_unique<Counted>(4);
    auto two = hummock::make_unique<Counted>(heap, 5);
    CHECK(one->value == 4);
    CHECK(two->value == 5);
    CHECK(live_blocks(heap) == 1);
    auto wide = hummock::make_unique<Wide>();
    CHECK(support::is_aligned(wide.get(), 256));
    auto fixed = hummock::make_unique<const std::string>("text");
    CHECK(*fixed == "text");
    one = std::move(two);
  }
  CHECK(Counted::made == 2);
  CHECK(Counted::ended == 2);
  CHECK(live_blocks(heap) == 0);
}

TEST_CASE("unique_ptr to a base that is not where the object begins") {
  static_assert(std::is_convertible_v<hummock::unique_ptr<Both>, hummock::unique_ptr<Second>>);
  static_assert(!std::is_convertible_v<hummock::unique_ptr<Counted>, hummock::unique_ptr<int>>);
  static_assert(std::is_convertible_v<hummock::unique_ptr<Counted>, hummock::unique_ptr<const Counted>>);
  hummock::heap heap;
  int ended = 0;
  hummock::unique_ptr<Second> base = hummock::make_unique<Both>(heap, &ended);
  CHECK(base->b == 2);
  base.reset();
  CHECK(ended == 1);
  CHECK(live_blocks(heap) == 0);
}

TEST_CASE("unique_ptr to arrays") {
  Counted::forget();
  hummock::heap heap;
  auto numbers = hummock::make_unique<int[]>(100);
  for (int i = 0; i < 100; ++i) CHECK(numbers[static_cast<size_t>(i)] == 0);
  {
    auto objects = hummock::make_unique<Counted[]>(heap, 10);
    CHECK(Counted::made == 10);
    CHECK(live_blocks(heap) == 1);
    auto moved = std::move(objects);
    Counted* first = moved.get();
    moved.reset();
    CHECK(Counted::last_ended == first);  // the last first
  }
  CHECK(Counted::ended == 10);
  auto none = hummock::make_unique<Counted[]>(0);
  CHECK(none != nullptr);
  CHECK_THROWS_AS((void)hummock::make_unique<Counted[]>(SIZE_MAX / 2), std::bad_array_new_length);
}

TEST_CASE("a constructor that throws leaves nothing behind") {
  hummock::heap heap;
  Counted::forget();
  Counted::throw_at = 1;
  CHECK_THROWS_AS((void)hummock::make_unique<Counted>(heap, 1), int);
  CHECK(live_blocks(heap) == 0);
  Counted::throw_at = 6;
  CHECK_THROWS_AS((void)hummock::make_unique<Counted[]>(heap, 10), int);
  CHECK(Counted::made == 5);
  CHECK(Counted::ended == 5);
  CHECK(live_blocks(heap) == 0);
  Counted::forget();
}
