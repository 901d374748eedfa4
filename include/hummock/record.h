/* Hummock: the memory through which a process reports every call to `hummock record`.
 *
 * `hummock record -- program` makes a memfd called "hummock-record", with several parts one after the other,
 * each of `size` bytes. Every program on Hummock that it starts takes the first part whose `pid` is 0. Each
 * thread takes a ring of that part and alone writes events there. The tool reads them, and frees the room by
 * moving `tail`.
 *
 * The `order` of an event is drawn from the part's counter: a block's free has a lower number than the
 * allocation that hands out its memory again, whichever threads make them. Within a ring the numbers rise.
 *
 * A reader must check every index and count, because the memory may hold anything. All numbers are
 * little-endian; times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef HUMMOCK_RECORD_H
#define HUMMOCK_RECORD_H

#include <stdint.h>

#define HUMMOCK_RECORD_NAME "hummock-record"
#define HUMMOCK_RECORD_MAGIC UINT64_C(0x63657268756d6d6b) /* written last */
#define HUMMOCK_RECORD_VERSION 1
#define HUMMOCK_RECORD_RINGS 512
#define HUMMOCK_RECORD_EVENTS (1 << 15) /* of a ring */

/* What a call was. */
enum hummock_record_call {
  HUMMOCK_RECORD_MALLOC = 1,
  HUMMOCK_RECORD_CALLOC = 2,
  HUMMOCK_RECORD_NEW = 3,
  HUMMOCK_RECORD_ALIGNED = 4,      /* any call with an alignment above the usual one */
  HUMMOCK_RECORD_RESIZE_BEGIN = 5, /* realloc of the block at `address`, which may be free from now on */
  HUMMOCK_RECORD_RESIZE_END = 6,   /* by the same thread: the block is at `address` now; 0: nothing changed */
  HUMMOCK_RECORD_FREE = 7,
  HUMMOCK_RECORD_DELETE = 8,
  HUMMOCK_RECORD_SIZED = 9 /* a free or delete that says the size, and maybe the alignment */
};

typedef struct hummock_record_event {
  uint64_t order;
  uint64_t address;
  uint64_t size; /* as asked for, or claimed */
  uint64_t when; /* bits 16 to 63: time since the start; 8 to 15: binary logarithm of the alignment, or 0; 0
                    to 7: the call */
} hummock_record_event_t;

/* The states of a ring. */
enum { HUMMOCK_RECORD_UNUSED = 0, HUMMOCK_RECORD_USED = 1, HUMMOCK_RECORD_ENDED = 2 };

typedef struct hummock_record_ring {
  uint32_t state;   /* set to USED and ENDED by the thread, to UNUSED by the tool when all is read */
  uint32_t thread;  /* as the system numbers it */
  uint64_t head;    /* events written so far */
  uint64_t dropped; /* events that found no room while nobody read */
  uint8_t unused[40];
  uint64_t tail; /* events read so far */
  uint8_t unused_too[4096 - 72];
  hummock_record_event_t event[HUMMOCK_RECORD_EVENTS];
} hummock_record_ring_t;

typedef struct hummock_record_head {
  uint64_t magic;
  uint32_t version;
  uint32_t pid;
  uint64_t size; /* of the part */
  uint64_t started;
  char program[16]; /* ended by NUL; it may have control characters */
  uint32_t rings;   /* number of rings that were ever used, from the first on */
  uint32_t forks;   /* children of a fork, which are not recorded */
  uint64_t dropped; /* events of threads without a ring, and of signal handlers that interrupted a call */
  uint32_t closed;  /* set by the tool: nobody will read any more */
  uint8_t unused[60];
  uint64_t order; /* the next event's; on a line of its own */
  uint8_t unused_too[4096 - 136];
} hummock_record_head_t;

typedef struct hummock_record {
  hummock_record_head_t head;
  hummock_record_ring_t ring[HUMMOCK_RECORD_RINGS];
} hummock_record_t;

#endif /* HUMMOCK_RECORD_H */
