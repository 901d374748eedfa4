#include "observe/json.h"

#include <string.h>

namespace hummock::observe {
namespace {

class Writer {
 public:
  Writer(char* out, size_t room) : out_(out), room_(room) {}

  size_t end() {
    if (room_ != 0) out_[length_ < room_ ? length_ : room_ - 1] = '\0';
    return length_;
  }

  void open(const char* name, char bracket) {
    key(name);
    put(bracket);
    first_ = true;
  }
  void close(char bracket) {
    put(bracket);
    first_ = false;
  }
  void number(const char* name, uint64_t value) {
    key(name);
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    for (; at < sizeof digits; ++at) put(digits[at]);
  }
  void text(const char* name, const char* value) {
    key(name);
    quoted(value);
  }

 private:
  void key(const char* name) {
    if (!first_) put(',');
    first_ = false;
    if (name == nullptr) return;
    quoted(name);
    put(':');
  }
  // A program's name may be any bytes: what is no printable ASCII becomes a question mark.
  void quoted(const char* value) {
    put('"');
    for (; *value != '\0'; ++value) {
      if (*value == '"' || *value == '\\') put('\\');
      const unsigned char c = static_cast<unsigned char>(*value);
      put(c < ' ' || c >= 127 ? '?' : *value);
    }
    put('"');
  }
  void put(char c) {
    if (length_ + 1 < room_) out_[length_] = c;
    ++length_;
  }

  char* out_;
  size_t room_;
  size_t length_ = 0;
  bool first_ = true;
};

// A number of a row and its name.
template <class Row>
struct Field {
  const char* name;
  uint64_t Row::*value;
};

template <class Row, size_t N>
void write_fields(Writer& out, const Row& row, const Field<Row> (&fields)[N]) {
  for (const Field<Row>& field : fields) out.number(field.name, row.*field.value);
}

using F = hummock_figures_t;
constexpr Field<F> kTotals[] = {
    {"live", &F::live},
    {"committed", &F::committed},
    {"dirty", &F::dirty},
    {"mapped", &F::mapped},
    {"peak", &F::peak},
    {"metadata", &F::metadata},
    {"purged", &F::purged},
    {"purged_pages", &F::purged_pages},
    {"cached", &F::cached},
    {"large_blocks", &F::large_blocks},
    {"large_bytes", &F::large_bytes},
    {"threads", &F::threads},
    {"heaps", &F::heaps},
    {"drawn_bytes", &F::drawn_bytes},
    {"drawn_blocks", &F::drawn_blocks},
    {"reused", &F::reused},
};
constexpr Field<F> kHugePages[] = {
    {"pinned", &F::huge_pinned}, {"advised", &F::huge_advised}, {"refusals", &F::huge_refusals}};
constexpr Field<F> kLimits[] = {
    {"soft", &F::limit_soft}, {"hard", &F::limit_hard}, {"refusals", &F::limit_refusals}};

using Class = hummock_page_class_t;
constexpr Field<Class> kClass[] = {
    {"block_size", &Class::block_size}, {"slabs", &Class::slabs},   {"live_blocks", &Class::live_blocks},
    {"bytes", &Class::bytes},           {"purged", &Class::purged}, {"untouched", &Class::untouched},
};
using Thread = hummock_page_thread_t;
constexpr Field<Thread> kThread[] = {
    {"id", &Thread::id}, {"cached", &Thread::cached}, {"earned", &Thread::earned}};
using Heap = hummock_page_heap_t;
using Space = hummock_page_space_t;
constexpr Field<Space> kSpace[] = {
    {"bytes", &Space::bytes}, {"maximum", &Space::maximum},         {"used", &Space::used},
    {"peak", &Space::peak},   {"live_blocks", &Space::live_blocks}, {"failures", &Space::failures}};
using Tag = hummock_page_tag_t;
constexpr Field<Tag> kTag[] = {{"tag", &Tag::tag}, {"bytes", &Tag::bytes}, {"blocks", &Tag::blocks}};
constexpr Field<Heap> kHeap[] = {
    {"number", &Heap::number}, {"live", &Heap::live}, {"bytes", &Heap::bytes}, {"slabs", &Heap::slabs}};

template <size_t N>
void write_group(Writer& out, const char* name, const F& f, const Field<F> (&fields)[N]) {
  out.open(name, '{');
  write_fields(out, f, fields);
  out.close('}');
}

// Rows of which the program names some.
template <class Row>
const char* name_of(const Row&) {
  return nullptr;
}
const char* name_of(const Heap& row) {
  return row.name;
}
const char* name_of(const Space& row) {
  return row.name;
}

template <class Row, size_t N>
void write_table(Writer& out, const char* name, const Row* rows, uint32_t count,
                 const Field<Row> (&fields)[N]) {
  out.open(name, '[');
  for (const Row* row = rows; row != rows + count; ++row) {
    if (!is_used(*row)) continue;
    out.open(nullptr, '{');
    if (name_of(*row) != nullptr) out.text("name", name_of(*row));
    write_fields(out, *row, fields);
    out.close('}');
  }
  out.close(']');
}

// The last has no upper bound.
void write_times(Writer& out, const F& f) {
  out.open("slow_calls", '{');
  out.number("sampled_one_in", 256);
  out.number("total_ns", f.slow_ns);
  out.open("below_ns", '[');
  for (unsigned i = 0; i < HUMMOCK_PAGE_TIMES; ++i) {
    if (f.slow_calls[i] == 0) continue;
    out.open(nullptr, '{');
    out.number("ns", i + 1 < HUMMOCK_PAGE_TIMES ? uint64_t{64} << i : 0);
    out.number("calls", f.slow_calls[i]);
    out.close('}');
  }
  out.close(']');
  out.close('}');
}

void write_options(Writer& out, const hummock_figures_t& f) {
  out.open("options", '{');
  for (uint32_t i = 0; i < f.option_count; ++i) out.text(f.options[i].name, f.options[i].value);
  out.close('}');
}

}  // namespace

size_t write_json(const Described& what, char* buffer, size_t room) {
  const hummock_figures_t& f = *what.figures;
  Writer out(buffer, room);
  out.open(nullptr, '{');
  out.number("version", kJsonVersion);
  out.number("pid", what.pid);
  out.text("program", what.program);
  if (what.cgroup != nullptr) out.text("cgroup", what.cgroup);
  out.text("hummock", what.library);
  out.number("age_ms", what.age_ms);
  out.number("snapshots", f.snapshots);
  out.open("totals", '{');
  out.number("resident", what.resident);
  write_fields(out, f, kTotals);
  out.close('}');
  write_group(out, "huge_pages", f, kHugePages);
  write_group(out, "limits", f, kLimits);
  write_table(out, "classes", f.classes, f.class_count, kClass);
  write_table(out, "threads", f.thread, f.thread_count, kThread);
  write_table(out, "heaps", f.heap, f.heap_count, kHeap);
  write_table(out, "spaces", f.space, f.space_count, kSpace);
  write_table(out, "tags", f.tags, f.tag_count, kTag);
  write_times(out, f);
  write_options(out, f);
  out.close('}');
  return out.end();
}

}  // namespace hummock::observe
