/* Hummock: the profile of a process, which says where in the program live memory was allocated.
 *
 * While the profiler is on, one block in about `mean` bytes is sampled: each byte that the program asks for
 * has the same small chance, and a block is sampled when one of its bytes is. A sample represents as many
 * blocks and bytes as make all sums right on average, for any sizes. The sample ends when its block is freed.
 *
 * The profile is a memfd called "hummock-profile", made when the profiler is first started. A process that
 * may read /proc/PID/fd may open it, as with the page of figures (page.h, whose request `profile` starts and
 * stops the profiler). A process that holds a descriptor still has the profile when the program is gone,
 * however it ended. `hummock profile -- program` makes the memfd itself, with several profiles one after the
 * other, each of `size` bytes: every process that it starts takes the first whose `pid` is 0.
 *
 * How to read. Use pread. Check `magic`, `version`, `size`, and every index and count, because the memory may
 * hold anything. The process goes on writing, so what you read may be a few samples apart; each number by
 * itself is whole. Only samples are ever removed. Stacks, frames and modules are only added, so you may
 * subtract the figures of two moments.
 *
 * A stack's live bytes at the peak, as far as sampled, are its `live_bytes` if `rising` is set or its `mark`
 * is not that of the head, else its `peak_bytes`.
 *
 * All numbers are little-endian; times are nanoseconds of CLOCK_MONOTONIC. Numbers of blocks are in units of
 * 1/65536. A later version appends fields to the head, or changes `version`. */
#ifndef HUMMOCK_PROFILE_H
#define HUMMOCK_PROFILE_H

#include <stdint.h>

#define HUMMOCK_PROFILE_NAME "hummock-profile"
#define HUMMOCK_PROFILE_MAGIC UINT64_C(0x666f72706d6d7568) /* "hummprof" */
#define HUMMOCK_PROFILE_VERSION 1

#define HUMMOCK_PROFILE_SAMPLES (1 << 17)
#define HUMMOCK_PROFILE_STACKS (1 << 14)
#define HUMMOCK_PROFILE_INDEX (1 << 15)
#define HUMMOCK_PROFILE_FRAMES (1 << 19)
#define HUMMOCK_PROFILE_MODULES 512
#define HUMMOCK_PROFILE_DEPTH 64 /* most frames of a stack; the outermost are cut off */
#define HUMMOCK_PROFILE_BLOCK 65536
#define HUMMOCK_PROFILE_AGES \
  8 /* ranges of lifetimes: the first ends at 0.1 ms, each other at ten times that */

/* `blocks` and `bytes` are what a sample, or all samples of a stack, represent. */
typedef struct hummock_profile_head {
  uint64_t magic; /* written last */
  uint32_t version;
  uint32_t size; /* of the whole profile */
  uint32_t pid;  /* of the process, in its own namespace */
  uint32_t on;   /* 1: blocks are sampled now */
  uint64_t started;
  char library[16]; /* the version of Hummock, ended by NUL */
  char program[16]; /* the process's name, ended by NUL; it may have control characters */
  uint64_t mean;    /* bytes from one sample to the next, on average */

  uint32_t stacks; /* entries in use of each table; the first stack has the samples without a stack */
  uint32_t frames;
  uint32_t modules;
  uint32_t zero;
  uint64_t samples;         /* taken so far */
  uint64_t samples_dropped; /* of these, for which there was no room: they count in totals, never as live */
  uint64_t stacks_dropped;  /* samples whose stack found no room: they count for the first stack */

  uint64_t live_bytes; /* of all stacks */
  uint64_t live_blocks;
  uint64_t total_bytes;
  uint64_t total_blocks;
  uint64_t peak_bytes; /* most live bytes so far */
  uint64_t peak_time;  /* when that was */
  uint32_t rising;     /* 1: that is now */
  uint32_t mark;       /* else the number of that peak */
} hummock_profile_head_t;

/* A live sampled block. */
typedef struct hummock_profile_sample {
  uint64_t block; /* its address; 0: none; 1: is being written */
  uint64_t size;  /* as asked for */
  uint64_t bytes;
  uint64_t blocks;
  uint64_t time; /* when it was handed out */
  uint32_t stack;
  uint32_t thread; /* as the system numbers it */
} hummock_profile_sample_t;

/* One place that allocated memory, with its callers. */
typedef struct hummock_profile_stack {
  uint64_t live_bytes;
  uint64_t live_blocks;
  uint64_t total_bytes; /* asked for so far */
  uint64_t total_blocks;
  uint64_t peak_bytes;
  uint64_t peak_blocks;
  uint64_t since;   /* when it was first seen */
  uint64_t hash;    /* of its frames */
  uint32_t samples; /* so far */
  uint32_t mark;
  uint32_t first;                             /* where in the table of frames it begins, innermost first */
  uint32_t depth;                             /* number of its frames */
  uint64_t freed_bytes[HUMMOCK_PROFILE_AGES]; /* by how long they had lived; the last range has no end */
} hummock_profile_stack_t;

/* A file of code that some frame is in. If two have the same addresses, the first was unmapped before the
 * second was mapped. */
typedef struct hummock_profile_module {
  uint64_t start;
  uint64_t end;
  uint64_t base;  /* added to the addresses in the file */
  uint64_t since; /* when it was first seen */
  char path[224]; /* ended by NUL; cut to fit */
} hummock_profile_module_t;

typedef struct hummock_profile {
  hummock_profile_head_t head;
  uint8_t unused[4096 - sizeof(hummock_profile_head_t)];
  hummock_profile_module_t module[HUMMOCK_PROFILE_MODULES];
  hummock_profile_stack_t stack[HUMMOCK_PROFILE_STACKS];
  uint32_t index[HUMMOCK_PROFILE_INDEX];  /* only for the process itself */
  uint64_t frame[HUMMOCK_PROFILE_FRAMES]; /* return addresses */
  hummock_profile_sample_t sample[HUMMOCK_PROFILE_SAMPLES];
} hummock_profile_t;

#endif /* HUMMOCK_PROFILE_H */
