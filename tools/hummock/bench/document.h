// A result of the bench as a file: docs/benchmarks.md and bench/schema.json say what is in it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace hummock::tool {

using Json = nlohmann::ordered_json;

inline constexpr int kFormat = 1;

// These throw with what is wrong and with which file.
Json read_document(const std::string& path);
std::string read_text(const std::string& path);
void write_json(const std::string& path, const Json& document);
void write_csv(const std::string& path, const Json& document);
void write_html(const std::string& path, const Json& document);

// The document as it may stand in a script element of a page: no '<' is in it.
std::string script_data(const Json& document);

// A file of the project: beside the tool in a build folder, installed, or in the source tree. Empty: nowhere.
std::string find_file(const std::string& in_build, const std::string& installed,
                      const std::string& in_source);

// "big-brain, 4 threads, 64K": what a result, or one of the worst cells of a summary, is about.
std::string cell_name(const Json& cell);
std::string short_bytes(double bytes);

}  // namespace hummock::tool
