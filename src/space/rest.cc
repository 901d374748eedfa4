#include "space/rest.h"

#include "base/bits.h"

namespace hummock::space {

Rest* make_rest(void* place, size_t largest, uint64_t blocks) {
  Rest* rest = static_cast<Rest*>(place);  // zeroed with the engine
  rest->blocks = blocks;
  rest->largest = resting_size(largest);
  rest->count = rest_lists(largest);
  const uint64_t rooms = rest->largest < kOneSize ? rest->largest / kGranule + 1 : rest->count;
  for (uint64_t number = 0; number < rooms; ++number) rest->lists[number].room = blocks;
  return rest;
}

void fit_rest(const Engine* engine, Rest* rest) {
  rest->part = uint64_t{1} << base::log2_floor(engine->end / 4 | 1024);
  rest->enough = uint64_t{1} << (list_of(rest->part) >> 6);
}

uint64_t resting_blocks(const Rest* rest) {
  uint64_t blocks = figure(rest->in_run);
  for (uint64_t number = 0; number < rest->count; ++number) {
    if (figure(rest->lists[number].first) != 0) blocks += rest->blocks - figure(rest->lists[number].room);
  }
  return blocks;
}

void wake_one(Engine* engine, Rest* rest) {
  constexpr unsigned kLooks = 12;
  const uint64_t count = rest->count;
  uint64_t turn = rest->turn;
  Rest::List* list = &rest->lists[turn];
  if (const uint64_t at = list->first; at != 0) {
    const uint64_t value = header(engine, at);
    list->first = word(engine, at);
    ++list->room;
    rest->bytes -= size_in(value);
    return give_dense(engine, at, value & ~kResting);
  }
  for (unsigned i = 0; i < kLooks && rest->lists[turn].first == 0; ++i)
    turn = turn + 1 == count ? 0 : turn + 1;
  rest->turn = turn;
}

void end_run(Engine* engine, Rest* rest) {
  if (rest->in_run == 0) return;
  const uint64_t at = rest->run;
  const uint64_t size = rest->behind - at;
  engine->live -= rest->in_run - 1;  // it is freed as one block
  rest->expects_run = rest->in_run > 1;
  rest->in_run = 0;
  rest->bytes -= size;
  give_dense(engine, at, seal(at) | size | (header(engine, at) & kPrevFree));
}

void wake_all(Engine* engine, Rest* rest) {
  end_run(engine, rest);
  while (rest->bytes != 0) wake_one(engine, rest);
}

}  // namespace hummock::space
