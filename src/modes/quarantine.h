// The quarantine: freed blocks of checked mode that are not reused yet.
#ifndef HUMMOCK_MODES_QUARANTINE_H
#define HUMMOCK_MODES_QUARANTINE_H

#include "modes/checked_record.h"

namespace hummock::modes::checked {

// Takes a block in that is freed and poisoned. Checks those whose turn has come, and gives them back.
void put_in_quarantine(Record* record);
// Gives all of them back: memory is short.
void empty_quarantine();
// A heap has ended whose blocks are all in here, or on their way out; until they have left it keeps so many
// bytes beside them. They count like blocks.
void charge_quarantine(size_t kept);

}  // namespace hummock::modes::checked

#endif  // HUMMOCK_MODES_QUARANTINE_H
