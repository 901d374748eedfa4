// A small reader of call frame information (DWARF 5 section 6.4, and the exception frames of the LSB).
#include "trace/linux/unwind.h"

#include <string.h>

namespace hummock::trace {

#if defined(__x86_64__)

namespace {

constexpr unsigned kBp = 6, kSp = 7, kReturn = 16;  // DWARF's numbers
constexpr unsigned kMostRemembered = 8;

enum : unsigned char {
  kAbsolute = 0x00,
  kPcRelative = 0x10,
  kSigned4 = 0x0b,
  kUnsigned4 = 0x03,
  kIndirect = 0x80,
  kTable = 0x3b,  // four bytes, signed, from the start of the header
};

constexpr Rule kEnd = {Rule::without_offset, Rule::end, 0};
constexpr Rule kFramePointer = {Rule::without_offset, Rule::frame_pointer, 0};

// Bytes that are read in order; past the end they are zero, and `fine` is false.
struct Reader {
  const unsigned char* at;
  const unsigned char* end;
  bool fine = true;

  template <class T>
  T fixed() {
    T value = 0;
    if (static_cast<size_t>(end - at) < sizeof(T)) {
      fine = false;
      at = end;
      return 0;
    }
    memcpy(&value, at, sizeof(T));
    at += sizeof(T);
    return value;
  }
  uint8_t byte() { return fixed<uint8_t>(); }

  uint64_t number() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t next = byte();
      if (shift < 64) value |= uint64_t{next & 0x7fu} << shift;
      if ((next & 0x80) == 0) return value;
    }
  }
  int64_t signed_number() {
    uint64_t value = 0;
    for (unsigned shift = 0;;) {
      const uint8_t next = byte();
      if (shift < 64) value |= uint64_t{next & 0x7fu} << shift;
      shift += 7;
      if ((next & 0x80) != 0) continue;
      if (shift < 64 && (next & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
  void skip(uint64_t count) {
    const uint64_t left = static_cast<uint64_t>(end - at);
    if (count > left) fine = false;
    at += count <= left ? count : left;
  }
  // An address in one of the encodings that compilers and linkers use; fine is false for others.
  uintptr_t address(uint8_t encoding) {
    const uintptr_t here = (encoding & 0x70) == kPcRelative ? reinterpret_cast<uintptr_t>(at) : 0;
    if ((encoding & 0x70) != kPcRelative && (encoding & 0x70) != kAbsolute) fine = false;
    return here + extent(encoding);
  }
  // The number alone, as the lengths of functions are kept.
  uintptr_t extent(uint8_t encoding) {
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        return fixed<uint64_t>();
      case kSigned4:
        return static_cast<uintptr_t>(int64_t{fixed<int32_t>()});
      case kUnsigned4:
        return fixed<uint32_t>();
      default:
        fine = false;
        return 0;
    }
  }
};

// The table of the header is sorted by address. Null: the address is before all functions, or the header is
// of another make.
const unsigned char* find_entry(const unsigned char* header, uintptr_t address) {
  if (header[0] != 1 || header[2] != kUnsigned4 || header[3] != kTable) return nullptr;
  const size_t pointer = (header[1] & 0x0f) == kSigned4 || (header[1] & 0x0f) == kUnsigned4 ? 4 : 8;
  uint32_t count;
  memcpy(&count, header + 4 + pointer, sizeof count);
  struct Row {
    int32_t function, entry;
  };
  const unsigned char* table = header + 4 + pointer + sizeof count;
  const int64_t wanted = static_cast<int64_t>(address - reinterpret_cast<uintptr_t>(header));
  size_t low = 0, high = count;  // rows below `low` begin at or before the address
  Row row = {};
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    memcpy(&row, table + middle * sizeof row, sizeof row);
    if (row.function <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return nullptr;
  memcpy(&row, table + (low - 1) * sizeof row, sizeof row);
  return header + row.entry;
}

// What a rule says of one register: nothing, a place, or something we do not follow.
struct Saved {
  enum Kind : uint8_t { same, at_offset, at_bp, undefined, other } kind = same;
  int64_t offset = 0;  // from the frame address
};

struct Row {
  enum Kind : uint8_t { offset_of, through_bp, other } kind = other;
  uint64_t reg = 0;
  int64_t offset = 0;
  Saved bp, back;

  Saved* saved(uint64_t number) { return number == kBp ? &bp : number == kReturn ? &back : nullptr; }
};

struct Common {
  uint64_t code_step = 1;
  int64_t data_step = 1;
  uint8_t encoding = kAbsolute;
  bool augmented = false, signal = false;
  Reader instructions = {nullptr, nullptr};
};

// One entry's bytes after its length. `length` 0 ends the section.
Reader open_entry(const unsigned char* entry) {
  uint32_t length;
  memcpy(&length, entry, sizeof length);
  const unsigned char* start = entry + sizeof length;
  const bool usual = length != 0 && length != UINT32_MAX;
  return {start, start + (usual ? length : 0), usual};
}

bool read_common(const unsigned char* entry, Common* out) {
  Reader reader = open_entry(entry);
  if (reader.fixed<uint32_t>() != 0) return false;
  const uint8_t version = reader.byte();
  if (version != 1 && version != 3) return false;
  const char* augmentation = reinterpret_cast<const char*>(reader.at);
  while (reader.fine && reader.byte() != 0) {
  }
  out->code_step = reader.number();
  out->data_step = reader.signed_number();
  if ((version == 1 ? reader.byte() : reader.number()) != kReturn) return false;
  if (!reader.fine) return false;
  if (*augmentation == 'z') {
    const uint64_t length = reader.number();
    Reader data = {reader.at, reader.at};
    reader.skip(length);
    data.end = reader.at;
    for (const char* letter = augmentation + 1; *letter != '\0'; ++letter) {
      if (*letter == 'R') {
        out->encoding = data.byte();
      } else if (*letter == 'P') {
        const uint8_t encoding = data.byte();
        data.extent(encoding);
      } else if (*letter == 'L') {
        data.byte();
      } else if (*letter == 'S') {
        out->signal = true;
      } else {
        return false;
      }
    }
    if (!data.fine) return false;
    out->augmented = true;
  } else if (*augmentation != '\0') {
    return false;
  }
  out->instructions = reader;
  return reader.fine;
}

// Reads what compilers write where they realigned the stack: the frame address is kept below rbp.
void read_frame_expression(Reader* reader, Row* row) {
  const uint64_t length = reader->number();
  Reader words = {reader->at, reader->at};
  reader->skip(length);
  words.end = reader->at;
  const bool bp = words.byte() == 0x70 + kBp;
  row->offset = words.signed_number();
  row->kind =
      bp && words.byte() == 0x06 && words.at == words.end && words.fine ? Row::through_bp : Row::other;
}

Saved read_saved_expression(Reader* reader) {
  const uint64_t length = reader->number();
  Reader words = {reader->at, reader->at};
  reader->skip(length);
  words.end = reader->at;
  const bool bp = words.byte() == 0x70 + kBp;
  const int64_t offset = words.signed_number();
  return {bp && offset == 0 && words.at == words.end && words.fine ? Saved::at_bp : Saved::other, 0};
}

// Follows the instructions up to the row for `wanted`, bytes into the function. False: one is unknown.
class Machine {
 public:
  Machine(const Common& common, uint64_t wanted) : common_(common), wanted_(wanted) {}

  // The first pass is over the common instructions: what they leave is what "restore" means.
  bool run(Reader reader) {
    while (reader.fine && reader.at != reader.end && here_ <= wanted_) {
      if (!one(&reader)) return false;
    }
    return reader.fine;
  }
  void note_initial() { initial_ = row; }

  Row row;

 private:
  bool one(Reader* reader) {
    const uint8_t code = reader->byte();
    const uint8_t low = code & 0x3f;
    switch (code >> 6) {
      case 1:
        return advance(low);
      case 2:
        keep(low, {Saved::at_offset, static_cast<int64_t>(reader->number()) * common_.data_step});
        return true;
      case 3:
        return restore(low);
      default:
        return extended(code, reader);
    }
  }

  bool extended(uint8_t code, Reader* reader) {
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x02:
        return advance(reader->byte());
      case 0x03:
        return advance(reader->fixed<uint16_t>());
      case 0x04:
        return advance(reader->fixed<uint32_t>());
      case 0x06:
        return restore(reader->number());
      case 0x0a:
        if (remembered_ == kMostRemembered) return false;
        stack_[remembered_++] = row;
        return true;
      case 0x0b:
        if (remembered_ == 0) return false;
        row = stack_[--remembered_];
        return true;
      case 0x0c:
      case 0x12:  // def_cfa, def_cfa_sf
        row.kind = Row::offset_of;
        row.reg = reader->number();
        row.offset = offset(code == 0x12, reader);
        return true;
      case 0x0d:
        row.reg = reader->number();
        return true;
      case 0x0e:
      case 0x13:  // def_cfa_offset, _sf
        row.offset = offset(code == 0x13, reader);
        return true;
      case 0x0f:
        read_frame_expression(reader, &row);
        return true;
      case 0x2e:  // GNU_args_size
        reader->number();
        return true;
      default:
        return of_register(code, reader);
    }
  }

  bool of_register(uint8_t code, Reader* reader) {
    const uint64_t reg = reader->number();
    switch (code) {
      case 0x05:
      case 0x11: {  // offset_extended, _sf
        const int64_t factor =
            code == 0x11 ? reader->signed_number() : static_cast<int64_t>(reader->number());
        keep(reg, {Saved::at_offset, factor * common_.data_step});
        return true;
      }
      case 0x07:
        keep(reg, {Saved::undefined, 0});
        return true;
      case 0x08:
        keep(reg, {Saved::same, 0});
        return true;
      case 0x09:  // in another register
        reader->number();
        keep(reg, {Saved::other, 0});
        return true;
      case 0x10:
        keep(reg, read_saved_expression(reader));
        return true;
      case 0x14:
      case 0x15:  // the value itself is an offset
        reader->number();
        keep(reg, {Saved::other, 0});
        return true;
      case 0x16:
        reader->skip(reader->number());
        keep(reg, {Saved::other, 0});
        return true;
      default:
        return false;
    }
  }

  int64_t offset(bool factored, Reader* reader) {
    return factored ? reader->signed_number() * common_.data_step : static_cast<int64_t>(reader->number());
  }
  bool advance(uint64_t steps) {
    here_ += steps * common_.code_step;
    return true;
  }
  bool restore(uint64_t reg) {
    if (Saved* kept = initial_.saved(reg)) keep(reg, *kept);
    return true;
  }
  void keep(uint64_t reg, Saved saved) {
    if (Saved* place = row.saved(reg)) *place = saved;
  }

  const Common& common_;
  const uint64_t wanted_;
  uint64_t here_ = 0;
  Row initial_;
  Row stack_[kMostRemembered];
  unsigned remembered_ = 0;
};

Rule rule_of(const Row& row) {
  if (row.back.kind != Saved::at_offset || row.back.offset != -8) return kEnd;
  if (row.kind == Row::through_bp) {
    const bool usual = row.offset < 0 && row.offset % 8 == 0 && row.offset >= -2048;
    if (!usual || row.bp.kind != Saved::at_bp) return kEnd;
    return {Rule::through_bp, static_cast<uint16_t>(-row.offset / 8), 0};
  }
  if (row.kind != Row::offset_of || (row.reg != kSp && row.reg != kBp)) return kEnd;
  if (row.offset <= 0 || row.offset % 8 != 0 || row.offset / 8 >= 1 << kRuleOffsetBits) return kEnd;
  Rule rule = {row.reg == kSp ? Rule::from_sp : Rule::from_bp, static_cast<uint16_t>(row.offset / 8), 0};
  if (row.bp.kind == Saved::at_offset) {
    const int64_t words = -row.bp.offset / 8;
    if (row.bp.offset % 8 != 0 || words <= 0 || words >= 1 << kRuleSavedBits) return kEnd;
    rule.saved_bp = static_cast<uint16_t>(words);
  } else if (row.bp.kind != Saved::same && row.bp.kind != Saved::undefined) {
    return kEnd;
  }
  return rule;
}

}  // namespace

Rule read_rule(const Module& module, uintptr_t address) {
  if (module.unwinds == nullptr) return kFramePointer;
  const unsigned char* entry = find_entry(module.unwinds, address);
  if (entry == nullptr) return kFramePointer;
  Reader reader = open_entry(entry);
  const unsigned char* common_place = reader.at;
  common_place -= reader.fixed<uint32_t>();
  Common common;
  if (!reader.fine || !read_common(common_place, &common)) return kEnd;
  const uintptr_t function = reader.address(common.encoding);
  const uintptr_t length = reader.extent(common.encoding);
  if (!reader.fine || (common.encoding & kIndirect) != 0) return kEnd;
  if (address - function >= length) return kFramePointer;  // between functions: written by hand
  if (common.signal) return kEnd;
  if (common.augmented) reader.skip(reader.number());
  Machine machine(common, address - function);
  if (!machine.run(common.instructions)) return kEnd;
  machine.note_initial();
  if (!machine.run(reader)) return kEnd;
  return rule_of(machine.row);
}

#endif

}  // namespace hummock::trace
