// Stacks without libgcc's unwinder, which costs 15 µs for 24 frames and may allocate.
//
// On x86-64 each return address has a rule that leads to the caller (trace/linux/unwind.h). Rules are kept in
// a table, so that a frame costs a look into it and two loads; what has no rule (code made at run time) is
// left by its frame pointer, as are all frames on other machines.
#include "trace/backtrace.h"

#include <errno.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/keep_errno.h"
#include "os/linux/uncancelled.h"
#include "os/sleep.h"
#include "os/thread.h"
#include "trace/faults.h"
#include "trace/linux/modules.h"
#include "trace/linux/unwind.h"

extern "C" __attribute__((weak)) void* __libc_stack_end;

// Stacks are read as words that belong to others.
#define HUMMOCK_READS_STACKS __attribute__((no_sanitize("address", "thread", "undefined")))

namespace hummock::trace {
namespace {

constexpr uintptr_t kPage = 4096;  // a divisor of every page size
constexpr uintptr_t kMostProbed = 256 << 10;
constexpr uintptr_t kLeastCode = 4096;
constexpr unsigned kAddressBits = 47;
constexpr uintptr_t kMostCode = sizeof(void*) == 8 ? uintptr_t{1} << kAddressBits : UINTPTR_MAX;
constexpr unsigned kOwnInProgram =
    2;  // callers() and what calls it, where the allocator is part of the program

#define HUMMOCK_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

// ---- What may be read ---------------------------------------------------------------------------

// The part of this thread's stack that is known to be readable; empty at first. A signal handler may come
// between any two steps of ours: the end is set after the size, and only the size changes later. Nothing is
// known of a stack of 4 GiB or more.
HUMMOCK_THREAD_LOCAL uintptr_t stack_high;

uintptr_t stack_low() {
  return stack_high - os::thread_words.stack_bytes;
}
bool extend_stack(uintptr_t low, uintptr_t high) {
  if (high - low > UINT32_MAX) return false;
  os::thread_words.stack_bytes = static_cast<uint32_t>(high - low);
  return true;
}

// The kernel reads the mask before it looks at what to do with it, which is nonsense here.
bool is_readable(uintptr_t page) {
  const base::KeepErrno keep;
  const long result = syscall(SYS_rt_sigprocmask, ~0, page, nullptr, 8);
  return result == 0 || errno != EFAULT;
}

bool all_readable(uintptr_t from, uintptr_t to) {
  if (to - from > kMostProbed) return false;
  for (uintptr_t page = base::align_down(from, kPage); page < to; page += kPage) {
    if (!is_readable(page)) return false;
  }
  return true;
}

bool adopt_stack(uintptr_t here, uintptr_t high) {
  if (here >= high || !all_readable(here, high)) return false;
  if (!extend_stack(base::align_down(here, kPage), high)) return false;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  stack_high = high;
  return true;
}

// glibc keeps a thread's control block at the upper end of its stack; the first thread's stack ends where
// the loader says. Any other stack (of a signal, of a coroutine) is nobody's.
bool learn_stack(uintptr_t here) {
  if (stack_high != 0) {
    if (here >= stack_low() || !all_readable(here, stack_low())) return false;
    return extend_stack(base::align_down(here, kPage), stack_high);
  }
  if (adopt_stack(here, os::thread_address())) return true;
  return &__libc_stack_end != nullptr && adopt_stack(here, reinterpret_cast<uintptr_t>(__libc_stack_end));
}

// On a stack of unknown size each page is asked for.
class Stack {
 public:
  explicit Stack(uintptr_t here) {
    if ((here >= stack_low() && here < stack_high) || learn_stack(here)) {
      low_ = here;
      size_ = stack_high - here;
    }
  }

  HUMMOCK_READS_STACKS bool read(uintptr_t address, uintptr_t* word) {
    if (address - low_ >= size_ && !probe(address)) return false;
    *word = *reinterpret_cast<const uintptr_t*>(address);
    return true;
  }

 private:
  __attribute__((noinline)) bool probe(uintptr_t address) {
    const uintptr_t page = base::align_down(address, kPage);
    if (left_ == 0 || !is_readable(page)) return false;
    --left_;
    low_ = page;
    size_ = kPage;
    return true;
  }

  uintptr_t low_ = 0, size_ = 0;
  unsigned left_ = 64;  // pages that may be asked for
};

// ---- Rules --------------------------------------------------------------------------------------

struct Frame {
  uintptr_t code;  // a return address
  uintptr_t sp;    // above all that was read
  uintptr_t bp;
};

// By the frame pointer: it must lead upwards.
inline bool leave_by_pointer(Stack* stack, Frame* frame) {
  const uintptr_t bp = frame->bp;
  if (bp < frame->sp || bp % sizeof(uintptr_t) != 0) return false;
  if (!stack->read(bp, &frame->bp) || !stack->read(bp + sizeof(uintptr_t), &frame->code)) return false;
  frame->sp = bp + 2 * sizeof(uintptr_t);
  return true;
}

#if defined(__x86_64__)

// An entry is one word, so that threads need no order among each other: the rule, and of the mixed address
// what the entry's place does not say. 0: none.
constexpr unsigned kTableBits = 14;
constexpr unsigned kTagBits = kAddressBits - kTableBits;
constexpr unsigned kRuleBits = 2 + kRuleOffsetBits + kRuleSavedBits;
static_assert(kTagBits + kRuleBits == 64);
uint64_t rules[1u << kTableBits];  // atomic, relaxed

// Multiplying by an odd number loses nothing of the address.
inline uint64_t mix(uintptr_t code) {
  return (code * 0x9e3779b97f4a7c15u) & (kMostCode - 1);
}

uint64_t pack(uint64_t mixed, const Rule& rule) {
  const uint64_t word =
      rule.kind | uint64_t{rule.offset} << 2 | uint64_t{rule.saved_bp} << (2 + kRuleOffsetBits);
  return word | (mixed << kRuleBits);
}

// Modules seen, by where they start: which end and unwind data they had. An address may be another module's
// after dlclose; then what is known of addresses is forgotten. Atomic, relaxed: who reads half of an entry
// forgets once too often.
struct Seen {
  uintptr_t start, what;
};
constexpr unsigned kSeen = 512;
Seen seen[kSeen];

bool is_new(const Module& module) {
  const uintptr_t what = module.end * 31 + reinterpret_cast<uintptr_t>(module.unwinds);
  const unsigned first = static_cast<unsigned>(mix(module.start) >> (kAddressBits - 9));
  for (unsigned i = 0; i < kSeen; ++i) {
    Seen& entry = seen[(first + i) % kSeen];
    const uintptr_t start = __atomic_load_n(&entry.start, __ATOMIC_RELAXED);
    if (start != 0 && start != module.start) continue;
    if (start != 0 && __atomic_load_n(&entry.what, __ATOMIC_RELAXED) == what) return false;
    __atomic_store_n(&entry.what, what, __ATOMIC_RELAXED);
    __atomic_store_n(&entry.start, module.start, __ATOMIC_RELAXED);
    return true;
  }
  return true;
}

__attribute__((noinline, cold)) uint64_t learn_rule(uintptr_t code, uint64_t mixed) {
  Module module;
  Rule rule = {Rule::without_offset, Rule::frame_pointer, 0};
  if (find_module(code - 1, &module)) {
    if (is_new(module)) {
      for (uint64_t& entry : rules) __atomic_store_n(&entry, 0, __ATOMIC_RELAXED);
    }
    rule = read_rule(module, code - 1);
  }
  const uint64_t word = pack(mixed, rule);
  __atomic_store_n(&rules[mixed >> kTagBits], word, __ATOMIC_RELAXED);
  return word;
}

HUMMOCK_READS_STACKS inline bool leave(Stack* stack, Frame* frame) {
  const uint64_t mixed = mix(frame->code);
  uint64_t word = __atomic_load_n(&rules[mixed >> kTagBits], __ATOMIC_RELAXED);
  if (word == 0 || ((word ^ (mixed << kRuleBits)) >> kRuleBits) != 0) word = learn_rule(frame->code, mixed);
  const unsigned kind = word & 3;
  const uintptr_t offset = (word >> 2) & ((1u << kRuleOffsetBits) - 1);
  const uintptr_t saved = (word >> (2 + kRuleOffsetBits)) & ((1u << kRuleSavedBits) - 1);
  uintptr_t above, bp = frame->bp;
  if (kind <= Rule::from_bp) {
    above = (kind == Rule::from_sp ? frame->sp : frame->bp) + 8 * offset;
  } else if (kind == Rule::through_bp) {
    if (bp % 8 != 0 || !stack->read(bp - 8 * offset, &above)) return false;
  } else {
    return offset == Rule::frame_pointer && leave_by_pointer(stack, frame);
  }
  if (above <= frame->sp || above % 8 != 0) return false;
  if (!stack->read(above - 8, &frame->code)) return false;
  const uintptr_t kept = kind == Rule::through_bp ? bp : above - 8 * saved;
  if ((saved != 0 || kind == Rule::through_bp) && !stack->read(kept, &frame->bp)) return false;
  frame->sp = above;
  return true;
}

#else

inline bool leave(Stack* stack, Frame* frame) {
  return leave_by_pointer(stack, frame);
}

#endif

// A signed return address has its signature in the bits above those of addresses.
inline uintptr_t plain_code(uintptr_t code) {
#if defined(__aarch64__)
  return code & ((uintptr_t{1} << 48) - 1);
#else
  return code;
#endif
}

// ---- The allocator's own code -------------------------------------------------------------------

// The addresses of the library's file; empty when the allocator is part of the program itself.
uintptr_t own_start, own_size;  // atomic: the size is released after the start
bool own_known;                 // atomic

__attribute__((noinline, cold)) void learn_own() {
  Module module;
  if (find_module(reinterpret_cast<uintptr_t>(&callers), &module) && *module.name != '\0') {
    __atomic_store_n(&own_start, module.start, __ATOMIC_RELAXED);
    __atomic_store_n(&own_size, module.end - module.start, __ATOMIC_RELEASE);
  }
  __atomic_store_n(&own_known, true, __ATOMIC_RELEASE);
}

// Where the allocator is a file of its own.
struct Own {
  uintptr_t start, size;
};

// From a frame upwards. Left out: the first `skipped` ones, and those of the allocator's file before any
// other.
__attribute__((noinline)) HUMMOCK_READS_STACKS unsigned walk(Frame frame, Own own, unsigned skipped,
                                                             void** frames, unsigned most) {
  Stack stack(frame.sp);
  bool outside = false;
  unsigned count = 0;
  while (frame.code >= kLeastCode && frame.code < kMostCode) {
    if (skipped != 0) {
      --skipped;
    } else if (outside || frame.code - own.start >= own.size) {
      outside = true;
      frames[count++] = reinterpret_cast<void*>(frame.code);
      if (count == most) break;
    }
    if (!leave(&stack, &frame)) break;
    frame.code = plain_code(frame.code);
  }
  return count;
}

// Where a thread was when a signal came. Rules are those of calls: so the address is the next one's.
// False: this machine's registers are not known here.
bool read_registers(const void* context, Frame* out) {
#if defined(__x86_64__)
  const greg_t* registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  *out = {static_cast<uintptr_t>(registers[REG_RIP]) + 1, static_cast<uintptr_t>(registers[REG_RSP]),
          static_cast<uintptr_t>(registers[REG_RBP])};
  return true;
#elif defined(__aarch64__)
  const mcontext_t& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
  *out = {machine.pc + 1, machine.sp, machine.regs[29]};
  return true;
#else
  static_cast<void>(context);
  static_cast<void>(out);
  return false;
#endif
}

}  // namespace

__attribute__((noinline)) HUMMOCK_READS_STACKS unsigned callers(void** frames, unsigned most) {
  if (most == 0) return 0;
  // acquire: pairs with the releases of learn_own.
  if (!__atomic_load_n(&own_known, __ATOMIC_ACQUIRE)) learn_own();
  const uintptr_t size = __atomic_load_n(&own_size, __ATOMIC_ACQUIRE);
  const uintptr_t start = __atomic_load_n(&own_start, __ATOMIC_RELAXED);
  // Asking for it makes this function keep a frame pointer: the caller's and the way back stand there.
  const auto* here = static_cast<const uintptr_t*>(__builtin_frame_address(0));
  const Frame frame = {plain_code(here[1]), reinterpret_cast<uintptr_t>(here + 2), here[0]};
  return walk(frame, {start, size}, size != 0 ? 0 : kOwnInProgram - 1, frames, most);
}

unsigned callers_at(const Fault& fault, void** frames, unsigned most) {
  Frame frame;
  if (most == 0 || !read_registers(fault.context, &frame)) return 0;
  return walk(frame, {0, 0}, 0, frames, most);
}

base::Line report_line() {
  base::Line line;
  line.dec(static_cast<uint64_t>(getpid())).text(": ");
  return line;
}

uint32_t thread_number() {
  return os::futex_number();
}

void forget_thread_number() {
  os::forget_futex_number();
}

}  // namespace hummock::trace
