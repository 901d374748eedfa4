// Writes JSON into the arena: the output must not disturb what is measured.
#pragma once
#include <stddef.h>
#include <stdint.h>

class Json {
 public:
  Json();
  Json& open(char bracket);
  Json& close(char bracket);
  Json& key(const char* name);
  Json& text(const char* value);
  Json& number(uint64_t value);
  Json& number(int value) { return number(static_cast<uint64_t>(value)); }
  Json& number(unsigned value) { return number(static_cast<uint64_t>(value)); }
  Json& number(double value);
  Json& boolean(bool value) { return raw(value ? "true" : "false"); }
  Json& null() { return raw("null"); }
  // JSON made by another writer.
  Json& splice(const Json& other);

  bool empty() const { return length_ == 0; }
  // Everything, with a line end, to a file descriptor.
  void print(int file) const;

 private:
  Json& raw(const char* value);
  void put(const char* bytes, size_t count);
  void separate();

  char* buffer_;
  size_t length_ = 0;
  bool first_ = true;
};
