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

void write_totals(Writer& out, const hummock_figures_t& f, uint64_t resident) {
  out.open("totals", '{');
  out.number("live", f.live);
  out.number("committed", f.committed);
  out.number("dirty", f.dirty);
  out.number("resident", resident);
  out.number("mapped", f.mapped);
  out.number("peak", f.peak);
  out.number("metadata", f.metadata);
  out.number("purged", f.purged);
  out.number("purged_pages", f.purged_pages);
  out.number("cached", f.cached);
  out.number("large_blocks", f.large_blocks);
  out.number("large_bytes", f.large_bytes);
  out.number("threads", f.threads);
  out.number("heaps", f.heaps);
  out.close('}');
}

void write_bounds(Writer& out, const hummock_figures_t& f) {
  out.open("huge_pages", '{');
  out.number("pinned", f.huge_pinned);
  out.number("advised", f.huge_advised);
  out.number("refusals", f.huge_refusals);
  out.close('}');
  out.open("limits", '{');
  out.number("soft", f.limit_soft);
  out.number("hard", f.limit_hard);
  out.number("refusals", f.limit_refusals);
  out.close('}');
}

// Classes without slabs are left out.
void write_classes(Writer& out, const hummock_figures_t& f) {
  out.open("classes", '[');
  for (uint32_t i = 0; i < f.class_count; ++i) {
    const hummock_page_class_t& row = f.classes[i];
    if (row.slabs == 0) continue;
    out.open(nullptr, '{');
    out.number("block_size", row.block_size);
    out.number("slabs", row.slabs);
    out.number("live_blocks", row.live_blocks);
    out.number("bytes", row.bytes);
    out.number("purged", row.purged);
    out.number("untouched", row.untouched);
    out.close('}');
  }
  out.close(']');
}

void write_threads(Writer& out, const hummock_figures_t& f) {
  out.open("threads", '[');
  for (uint32_t i = 0; i < f.thread_count; ++i) {
    out.open(nullptr, '{');
    out.number("id", f.thread[i].id);
    out.number("cached", f.thread[i].cached);
    out.number("earned", f.thread[i].earned);
    out.close('}');
  }
  out.close(']');
}

void write_heaps(Writer& out, const hummock_figures_t& f) {
  out.open("heaps", '[');
  for (uint32_t i = 0; i < f.heap_count; ++i) {
    out.open(nullptr, '{');
    out.number("number", f.heap[i].number);
    out.number("live", f.heap[i].live);
    out.number("bytes", f.heap[i].bytes);
    out.number("slabs", f.heap[i].slabs);
    out.close('}');
  }
  out.close(']');
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
  write_totals(out, f, what.resident);
  write_bounds(out, f);
  write_classes(out, f);
  write_threads(out, f);
  write_heaps(out, f);
  write_options(out, f);
  out.close('}');
  return out.end();
}

}  // namespace hummock::observe
