// The profile's tables: live samples, and what each stack stands for. They are memory that other processes
// read; its format is in hummock/profile.h.
//
// Nothing here takes a lock or allocates. Others may write there, too, as it is a file: so every index is
// checked before it is followed, and what the tables have handed out is counted here.
#ifndef HUMMOCK_HEAP_SAMPLE_TABLE_H
#define HUMMOCK_HEAP_SAMPLE_TABLE_H

#include "hummock/profile.h"

namespace hummock::heap::sampling {

// A sampled block, and what it stands for.
struct Sample {
  const void* block;
  uint64_t size, bytes, blocks;
  uint32_t thread;
};

// Samples are kept there from now on; null: nowhere. It reads zero but for `pid`.
void set_table(hummock_profile_t* table);
hummock_profile_t* current_table();
// Writes into the head whether blocks are sampled, and one in how many bytes. The last mean stays when
// sampling stops.
void tell_state(bool on, uint64_t mean);

// Counts the sample for the stack of `count` frames, and keeps it until the block is freed.
void add_sample(const Sample& sample, void* const* frames, unsigned count);

// The block's sample, no longer kept, but counted as live until it is ended, or put back. False: it has none.
bool take_sample(const void* block, hummock_profile_sample_t* out);
void end_sample(const hummock_profile_sample_t& sample);
void put_back(const hummock_profile_sample_t& sample);

}  // namespace hummock::heap::sampling

#endif  // HUMMOCK_HEAP_SAMPLE_TABLE_H
