// hummock symbolize: the reports of checked mode with functions, files and lines.
#ifndef HUMMOCK_TOOL_SYMBOLIZE_H
#define HUMMOCK_TOOL_SYMBOLIZE_H

namespace hummock::tool {

// Copies standard input to standard output. What addr2line knows of a frame replaces the frame's end; 1 when
// there is no addr2line.
int symbolize();

}  // namespace hummock::tool

#endif  // HUMMOCK_TOOL_SYMBOLIZE_H
