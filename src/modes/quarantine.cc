#include "modes/quarantine.h"

#include "modes/checked.h"

namespace hummock::modes::checked {
Record* next_looked;

bool is_awaited(const Record* record) {
  return !is_process_heap(record->heap) && is_whole(record);
}

void drop(Quarantine& all, const UserHeap* heap) {
  Record* kept = nullptr;  // the last one
  for (Record* record = all.oldest; record != nullptr; record = record->next) {
    if (record->heap != heap) {
      kept = record;
      continue;
    }
    if (next_looked == record) next_looked = record->next;
    if (record->hollow) allow_inside(record);
    announce_room(record);
    all.bytes -= record->room();
    all.count -= 1;
    (kept != nullptr ? kept->next : all.oldest) = record->next;
  }
  all.newest = kept;
  for (Record*& recent : all.recent) recent = nullptr;
}

}  // namespace hummock::modes::checked
