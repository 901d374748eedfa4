/* Hummock: the page of figures, through which a running process can be asked what its heap does.
 *
 * Each process that Hummock serves has one, a memfd called "hummock", unless the option `observe` is off or
 * the process is privileged (set-uid). Whoever may read /proc/PID/fd may open it: the same user, without
 * ptrace. There is no thread, signal, socket or port in the process. This header is its format; the command
 * `hummock stats` reads it, and any other program may.
 *
 * How to read. Find the link in /proc/PID/fd that reads "/memfd:hummock (deleted)" and open it. Use pread and
 * pwrite: a hostile process could cut the file, and a mapping of it would then end the reader with SIGBUS.
 * Check `magic`, `version` and `size`, that every count is within its table, and that `pid` is the process's
 * number in its own namespace (a child of fork that nobody has asked yet still has its parent's page).
 *
 * How to ask. The process does nothing for a page that nobody asks. Add one to `asked`; from then on each of
 * its calls that leaves the fast path gathers a slice, and when it is through, the figures are written and
 * `served` is what `asked` was. A process that makes no such call answers nothing: what stands there are the
 * figures of `taken`, or none if that is 0.
 *
 * How to read without tearing. `sequence` is odd while figures are written. Read it, then the figures, then
 * it again; where it was odd or has changed, begin anew.
 *
 * How to have something done. With an exclusive flock on the opened file: write `kind`, `option` and `value`,
 * then add one to `request`, then to `asked`. When `answered` is what `request` was, `result` is 0 or an
 * error number. All values are numbers within bounds, which the process checks; nothing is a pointer.
 *
 * A child of fork makes a page of its own when it is asked: write its number (in its own namespace) to
 * `child`, then add one to `children`, both in the page it inherited, and look for its new one.
 *
 * All numbers are little-endian, bytes unless said otherwise; times are nanoseconds of CLOCK_MONOTONIC.
 * A later version of the library appends fields, so that `size` and the file are longer: read what you know,
 * and take what an older page does not have for 0. Whatever else changes, changes `version`. */
#ifndef HUMMOCK_PAGE_H
#define HUMMOCK_PAGE_H

#include <stdint.h>

#define HUMMOCK_PAGE_NAME "hummock"
#define HUMMOCK_PAGE_MAGIC UINT64_C(0x656761706d6d7568) /* "hummpage" */
#define HUMMOCK_PAGE_VERSION 1

#define HUMMOCK_PAGE_CLASSES 96
#define HUMMOCK_PAGE_THREADS 256
#define HUMMOCK_PAGE_HEAPS 64
#define HUMMOCK_PAGE_OPTIONS 48
#define HUMMOCK_PAGE_SPACES 16
#define HUMMOCK_PAGE_TAGS 64
#define HUMMOCK_PAGE_TIMES 24

/* Values of `kind`. */
enum {
  HUMMOCK_REQUEST_NONE = 0,
  HUMMOCK_REQUEST_TRIM = 1,   /* give free memory back, in slices; `option` and `value` are not looked at */
  HUMMOCK_REQUEST_SET = 2,    /* the option of this index in `options` becomes `value`; EPERM: at start only;
                                 EINVAL: out of its bounds */
  HUMMOCK_REQUEST_PROFILE = 3 /* a block in `value` bytes is sampled from now on (profile.h), at most 2^40; 0:
                               none; below 0: as its option profile says, or would. `option` is not looked at.
                               EPERM: not in checked mode, nor where a space serves malloc; ENOMEM: no memory
                               for the profile; EINVAL: out of bounds */
};

typedef struct hummock_page_head {
  uint64_t magic;
  uint32_t version;
  uint32_t size; /* of the whole page */
  uint32_t pid;  /* of the process that writes it, in its own namespace */
  uint32_t zero;
  uint64_t started; /* when the page was made */
  char library[16]; /* the version of Hummock, ended by NUL */

  /* Written by readers. */
  uint32_t asked;
  uint32_t request;
  uint32_t kind;
  uint32_t option;
  int64_t value;
  uint32_t children;
  uint32_t child;

  /* Written by the process. */
  uint32_t served;
  uint32_t answered;
  int32_t result;
  uint32_t sequence;
} hummock_page_head_t;

/* One size class. Of all classes, live_blocks * block_size and large_bytes together are `live`. Fragmented is
 * bytes - purged - untouched - live_blocks * block_size. */
typedef struct hummock_page_class {
  uint64_t block_size;
  uint64_t slabs;
  uint64_t live_blocks; /* handed out, or in a thread's cache */
  uint64_t bytes;       /* of its slabs */
  uint64_t purged;      /* of them, given back to the system from between live blocks */
  uint64_t untouched;   /* of them, never touched by the allocator: memory only where the program wrote */
} hummock_page_class_t;

/* A thread that has a heap. */
typedef struct hummock_page_thread {
  uint64_t id;     /* as the system numbers it */
  uint64_t cached; /* bytes of free blocks that its magazines have room for */
  uint64_t earned; /* of that room, what it has beyond what each thread may hold, from the common budget */
} hummock_page_thread_t;

/* A first-class heap (hummock_heap_create). */
typedef struct hummock_page_heap {
  uint64_t number; /* stays while it lives */
  uint64_t live;   /* room of its live blocks, cached ones included */
  uint64_t bytes;  /* slabs and large blocks it holds */
  uint64_t slabs;  /* their number */
  char name[24];   /* that the program gave it, ended by NUL; empty: none */
} hummock_page_heap_t;

/* A deterministic space of the process (space.h). Its figures are read without its lock. */
typedef struct hummock_page_space {
  uint64_t bytes;       /* all of it now */
  uint64_t maximum;     /* that it may have */
  uint64_t used;        /* blocks with their headers, those in its threads' caches included */
  uint64_t peak;        /* highest `used` */
  uint64_t live_blocks; /* as in `used` */
  uint64_t failures;    /* requests refused */
  char name[32];        /* ended by NUL */
} hummock_page_space_t;

/* What threads with a tag have drawn (hummock_tag in observe.h), a row for each tag that was ever set. */
typedef struct hummock_page_tag {
  uint64_t tag; /* HUMMOCK_TAG_OTHERS: all for which there was no row */
  uint64_t bytes;
  uint64_t blocks;
} hummock_page_tag_t;

/* The value as HUMMOCK_CONF takes it, cut to fit; both ended by NUL. */
typedef struct hummock_page_option {
  char name[24];
  char value[40];
} hummock_page_option_t;

typedef struct hummock_figures {
  uint64_t taken; /* when they were complete; 0: never yet */
  uint64_t began; /* when the first slice was taken */

  uint64_t live;           /* room of live blocks, those in threads' caches included */
  uint64_t committed;      /* slabs and large blocks: what live blocks stand in */
  uint64_t dirty;          /* free, not yet given back to the system */
  uint64_t mapped;         /* address space taken from the system */
  uint64_t peak;           /* highest committed + dirty so far */
  uint64_t metadata;       /* the allocator's own records */
  uint64_t purged;         /* given back so far */
  uint64_t purged_pages;   /* now given back from inside slabs that are in use */
  uint64_t cached;         /* sum of all threads' `cached` */
  uint64_t large_blocks;   /* blocks above 64 KiB, their number */
  uint64_t large_bytes;    /* and their room */
  uint64_t threads;        /* with a heap: may be more than their table has */
  uint64_t heaps;          /* first-class heaps: likewise */
  uint64_t huge_pinned;    /* on huge pages that the system had set aside */
  uint64_t huge_advised;   /* where transparent huge pages were asked for */
  uint64_t huge_refusals;  /* requests for huge pages that were refused, their number */
  uint64_t limit_soft;     /* in effect, 0 for none */
  uint64_t limit_hard;     /* likewise */
  uint64_t limit_refusals; /* requests that limit_hard refused, their number */
  uint64_t snapshots;      /* times that figures were written, this one included */

  uint32_t class_count; /* entries in use; the last of `classes` has blocks of 8 bytes */
  uint32_t thread_count;
  uint32_t heap_count;
  uint32_t option_count;

  hummock_page_class_t classes[HUMMOCK_PAGE_CLASSES];
  hummock_page_thread_t thread[HUMMOCK_PAGE_THREADS];
  hummock_page_heap_t heap[HUMMOCK_PAGE_HEAPS];
  hummock_page_option_t options[HUMMOCK_PAGE_OPTIONS];

  uint64_t
      spaces; /* their number: may be more than their table has; 0 also while one is being made or ended */
  uint32_t space_count;
  uint32_t tag_count;
  /* How long calls take that fill a thread's cache from slabs: one in 256 is timed. Entry i counts those of
   * less than 2^(i + 6) ns, and not less than half of it; the last has all longer ones. */
  uint64_t slow_calls[HUMMOCK_PAGE_TIMES];
  uint64_t slow_ns; /* of all of them together */
  hummock_page_space_t space[HUMMOCK_PAGE_SPACES];
  hummock_page_tag_t tags[HUMMOCK_PAGE_TAGS];

  /* Since the process began. What threads' caches drew from slabs, and large blocks: the sums of all tags. A
   * block that a cache hands out again is not drawn again, so this is no count of calls. */
  uint64_t drawn_bytes;
  uint64_t drawn_blocks;
  uint64_t reused; /* free memory that slabs and large blocks got while it was in place: no page of it faults.
                      It may have been touched in part */
} hummock_figures_t;

typedef struct hummock_page {
  hummock_page_head_t head;
  hummock_figures_t figures;
} hummock_page_t;

#endif /* HUMMOCK_PAGE_H */
