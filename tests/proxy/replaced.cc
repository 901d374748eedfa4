// A program that brings its own GenericAllocator: all that the pools do not serve must come here.
#include <smmalloc.h>
#include <stdlib.h>

#include <string>

#include "check.h"

namespace {

struct Instance {
  std::string calls;
  void* freed = nullptr;
};
int created, destroyed;
bool refuses;

}  // namespace

sm::GenericAllocator::TInstance sm::GenericAllocator::Invalid() {
  return nullptr;
}
bool sm::GenericAllocator::IsValid(sm::GenericAllocator::TInstance instance) {
  return instance != Invalid();
}
sm::GenericAllocator::TInstance sm::GenericAllocator::Create() {
  if (refuses) return Invalid();
  ++created;
  return new Instance;
}
void sm::GenericAllocator::Destroy(sm::GenericAllocator::TInstance instance) {
  ++destroyed;
  delete static_cast<Instance*>(instance);
}
void* sm::GenericAllocator::Alloc(sm::GenericAllocator::TInstance instance, size_t bytesCount,
                                  size_t alignment) {
  static_cast<Instance*>(instance)->calls += 'a';
  void* p = nullptr;
  return posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytesCount) == 0 ? p
                                                                                                    : nullptr;
}
void sm::GenericAllocator::Free(sm::GenericAllocator::TInstance instance, void* p) {
  static_cast<Instance*>(instance)->calls += 'f';
  static_cast<Instance*>(instance)->freed = p;
  free(p);
}
void* sm::GenericAllocator::Realloc(sm::GenericAllocator::TInstance instance, void* p, size_t bytesCount,
                                    size_t) {
  static_cast<Instance*>(instance)->calls += 'r';
  return realloc(p, bytesCount);
}
size_t sm::GenericAllocator::GetUsableSpace(sm::GenericAllocator::TInstance instance, void* p) {
  SMMALLOC_UNUSED(p);
  static_cast<Instance*>(instance)->calls += 'u';
  return 77;
}

int main() {
  sm_allocator space = _sm_allocator_create(2, 4096);
  CHECK(space != nullptr && created == 1);
  Instance& own = *static_cast<Instance*>(space->GetGenericAllocatorInstance());
  CHECK(own.calls == "a");  // the allocator itself
  void* small = _sm_malloc(space, 20, 16);
  CHECK(own.calls == "a");
  void* large = _sm_malloc(space, 1000, 16);
  CHECK(own.calls == "aa");
  CHECK(_sm_msize(space, large) == 77 && own.calls == "aau");
  large = _sm_realloc(space, large, 2000, 16);
  CHECK(own.calls == "aauur");
  _sm_free(space, large);
  CHECK(own.calls == "aauurf" && own.freed == large);
  _sm_free(space, small);
  CHECK(own.calls == "aauurf");
  _sm_allocator_destroy(space);
  CHECK(destroyed == 1);
  refuses = true;
  CHECK(_sm_allocator_create(2, 4096) == nullptr);
  refuses = false;
  CHECK(_sm_allocator_create(2, SIZE_MAX / 8) == nullptr);  // no room: nothing stays behind
  CHECK(created == 2 && destroyed == 2);
  return 0;
}
