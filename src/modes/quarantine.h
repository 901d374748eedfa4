// The quarantine: freed blocks of checked mode that are not reused yet.
#ifndef HUMMOCK_MODES_QUARANTINE_H
#define HUMMOCK_MODES_QUARANTINE_H

#include "modes/checked_record.h"

namespace hummock::modes::checked {

// Takes a block in that is freed and poisoned. Checks those whose turn has come, and gives them back.
void put_in_quarantine(Record* record);
// Gives all of them back: memory is short.
void empty_quarantine();
// Takes the blocks of a heap that ends out of it. Afterwards nobody is about to give one back, and no more
// come. False: a thread stopped for good while it had such a block.
bool drop_from_quarantine(UserHeap* heap);

}  // namespace hummock::modes::checked

#endif  // HUMMOCK_MODES_QUARANTINE_H
