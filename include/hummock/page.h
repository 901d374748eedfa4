/* Hummock: the page of figures, through which you can ask a running process what its heap holds.
 *
 * Each process that Hummock serves has one, a memfd called "hummock", unless the option `observe` is off or
 * the process is privileged (set-uid). A process that may read /proc/PID/fd may open it: one of the same
 * user, without ptrace. The process needs no thread, signal, socket or port for it. This header is its
 * format; the command `hummock stats` reads it, and any other program may.
 *
 * How to read. Find the link in /proc/PID/fd that reads "/memfd:hummock (deleted)" and open it. Use pread and
 * pwrite: a hostile process could cut the file, and a reader that had mapped it would die of SIGBUS.
 * Check `magic`, `version` and `size`, that every count is within its table, and that `pid` is the process's
 * number in its own namespace (a child of fork that nobody has asked yet still has its parent's page).
 *
 * How to ask. The process does nothing for a page that nobody asks. Add one to `asked`. From then on each of
 * its calls that leaves the fast path gathers a slice. After the last slice it writes the figures and sets
 * `served` to what `asked` was. A process that makes no such call does not answer: the page then has the
 * figures of the time `taken`, or none if that is 0. A call makes at most four system calls for it. A
 * request, a child's page or a limit in percent takes a few such calls more.
 *
 * How to read without tearing. `sequence` is odd while the process writes figures. Read it, then the figures,
 * then it again; if it was odd or has changed, begin anew.
 *
 * How to make a request. Hold an exclusive flock on the opened file. Write `kind`, `option` and `value`, then
 * add one to `request`, then to `asked`. When `answered` is what `request` was, `result` is 0 or an error
 * number. All values are numbers within bounds, which the process checks; nothing is a pointer.
 *
 * A child of fork makes a page of its own when it is asked: write its number (in its own namespace) to
 * `child`, then add one to `children`, both in the page it inherited, and look for its new one. Some of
 * the child's calls make it: go on looking until it has its magic.
 *
 * All numbers are little-endian, and in bytes unless said otherwise; times are nanoseconds of
 * CLOCK_MONOTONIC. A later version of the library appends fields, so `size` and the file are longer: read the
 * fields you know, and take fields that an older page does not have as 0. Any other change changes `version`.
 */
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
  HUMMOCK_REQUEST_TRIM = 1,   /* return free memory, in slices; ignores `option` and `value` */
  HUMMOCK_REQUEST_SET = 2,    /* set the option with this index in `options` to `value`; EPERM: only at start;
                                 EINVAL: out of its bounds */
  HUMMOCK_REQUEST_PROFILE = 3 /* sample a block in `value` bytes from now on (profile.h), at most 2^40; 0:
                               none; below 0: as the option `profile` says. Ignores `option`. EPERM: in
                               checked mode, or where a space serves malloc; ENOMEM: no memory for the
                               profile; EINVAL: out of bounds */
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

/* One size class. The sum of live_blocks * block_size over all classes, plus large_bytes, is `live`.
 * bytes - purged - untouched - live_blocks * block_size is fragmented. */
typedef struct hummock_page_class {
  uint64_t block_size;
  uint64_t slabs;
  uint64_t live_blocks; /* handed out, or in a thread's cache */
  uint64_t bytes;       /* of its slabs */
  uint64_t purged;      /* of these, returned to the system from between live blocks */
  uint64_t untouched;   /* of these, never touched by the allocator; the program may have touched them */
} hummock_page_class_t;

/* A thread that has a heap. */
typedef struct hummock_page_thread {
  uint64_t id;     /* as the system numbers it */
  uint64_t cached; /* bytes of free blocks that its magazines have room for */
  uint64_t earned; /* of that, what the common budget gives it beyond what each thread may hold */
} hummock_page_thread_t;

/* A first-class heap (hummock_heap_create). */
typedef struct hummock_page_heap {
  uint64_t number; /* does not change while the heap lives */
  uint64_t live;   /* usable size of its live blocks, including cached ones */
  uint64_t bytes;  /* slabs and large blocks it holds */
  uint64_t slabs;  /* their number */
  char name[24];   /* given by the program, ended by NUL; empty: none */
} hummock_page_heap_t;

/* A deterministic space of the process (space.h). Its figures are read without its lock. */
typedef struct hummock_page_space {
  uint64_t bytes;       /* its size now */
  uint64_t maximum;     /* the size it may reach */
  uint64_t used;        /* blocks with their headers, including those in thread caches */
  uint64_t peak;        /* highest `used` */
  uint64_t live_blocks; /* as in `used` */
  uint64_t failures;    /* requests refused */
  char name[32];        /* ended by NUL */
} hummock_page_space_t;

/* What threads with a tag have drawn (hummock_tag in observe.h): one row for each tag that was ever set. */
typedef struct hummock_page_tag {
  uint64_t tag; /* HUMMOCK_TAG_OTHERS: all for which there was no row */
  uint64_t bytes;
  uint64_t blocks;
} hummock_page_tag_t;

/* The value as HUMMOCK_CONF takes it, cut to fit. Both end with NUL. */
typedef struct hummock_page_option {
  char name[24];
  char value[40];
} hummock_page_option_t;

typedef struct hummock_figures {
  uint64_t taken; /* when they were complete; 0: never yet */
  uint64_t began; /* when the first slice was taken */

  uint64_t live;           /* usable size of live blocks, including those in thread caches */
  uint64_t committed;      /* slabs and large blocks, which hold the live blocks */
  uint64_t dirty;          /* free, and not yet returned to the system */
  uint64_t mapped;         /* address space taken from the system */
  uint64_t peak;           /* highest committed + dirty so far */
  uint64_t metadata;       /* the allocator's own records */
  uint64_t purged;         /* returned to the system so far */
  uint64_t purged_pages;   /* purged now, inside slabs that are in use */
  uint64_t cached;         /* sum of all threads' `cached` */
  uint64_t large_blocks;   /* number of blocks above 64 KiB */
  uint64_t large_bytes;    /* their usable size */
  uint64_t threads;        /* threads with a heap; may be more than `thread` has */
  uint64_t heaps;          /* first-class heaps; may be more than `heap` has */
  uint64_t huge_pinned;    /* on reserved huge pages (hugetlb) */
  uint64_t huge_advised;   /* where Hummock asked for transparent huge pages */
  uint64_t huge_refusals;  /* number of requests for huge pages that the system refused */
  uint64_t limit_soft;     /* in effect, 0 for none */
  uint64_t limit_hard;     /* likewise */
  uint64_t limit_refusals; /* how often limit_hard refused memory; a request may ask more than once */
  uint64_t snapshots;      /* how often figures were written, with this time */

  uint32_t class_count; /* entries in use; the last of `classes` has blocks of 8 bytes */
  uint32_t thread_count;
  uint32_t heap_count;
  uint32_t option_count;

  hummock_page_class_t classes[HUMMOCK_PAGE_CLASSES];
  hummock_page_thread_t thread[HUMMOCK_PAGE_THREADS];
  hummock_page_heap_t heap[HUMMOCK_PAGE_HEAPS];
  hummock_page_option_t options[HUMMOCK_PAGE_OPTIONS];

  uint64_t spaces; /* may be more than `space` has; 0 while one is being created or destroyed */
  uint32_t space_count;
  uint32_t tag_count;
  /* How long calls take that fill a thread cache from slabs: one in 256 is timed. Entry i counts those of
   * less than 2^(i + 6) ns and at least half of that; the last has all longer ones. */
  uint64_t slow_calls[HUMMOCK_PAGE_TIMES];
  uint64_t slow_ns; /* of all of them together */
  hummock_page_space_t space[HUMMOCK_PAGE_SPACES];
  hummock_page_tag_t tags[HUMMOCK_PAGE_TAGS];

  /* Since the process began: what thread caches drew from slabs, and large blocks; the sums of all tags. A
   * block that a cache hands out again is not drawn again, so this does not count calls. */
  uint64_t drawn_bytes;
  uint64_t drawn_blocks;
  uint64_t reused; /* free memory that slabs and large blocks took before it was purged, so that it does not
                      fault. The program may have touched only a part of it */
} hummock_figures_t;

typedef struct hummock_page {
  hummock_page_head_t head;
  hummock_figures_t figures;
} hummock_page_t;

#endif /* HUMMOCK_PAGE_H */
