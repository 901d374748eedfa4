// The profile's tables: live samples, and the sums of each stack. Other processes read this memory; its
// format is in hummock/profile.h.
//
// Nothing here takes a lock or allocates. The memory is a file that others can write to. So every index is
// checked before it is followed, and the counts of used entries are kept outside it.
#ifndef HUMMOCK_MODES_SAMPLE_TABLE_H
#define HUMMOCK_MODES_SAMPLE_TABLE_H

#include "hummock/profile.h"

namespace hummock::modes::sampling {

// A sampled block, and what it represents.
struct Sample {
  const void* block;
  uint64_t size, bytes, blocks;
  uint32_t thread;
};

// Keeps samples of this process in this table from now on; null: nowhere. The table is zero except for `pid`.
void set_table(hummock_profile_t* table, unsigned process);
hummock_profile_t* current_table();
// Writes into the head whether blocks are sampled, and the mean. The last mean stays when sampling stops.
void tell_state(bool on, uint64_t mean);

// Counts the sample for the stack of `count` frames, and keeps it until the block is freed.
void add_sample(const Sample& sample, void* const* frames, unsigned count);

// Takes the block's sample out of the table. It counts as live until it is ended or put back. False: there is
// none.
bool take_sample(const void* block, hummock_profile_sample_t* out);
void end_sample(const hummock_profile_sample_t& sample);
void put_back(const hummock_profile_sample_t& sample);

}  // namespace hummock::modes::sampling

#endif  // HUMMOCK_MODES_SAMPLE_TABLE_H
