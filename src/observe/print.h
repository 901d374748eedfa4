// Statistics for people and for glibc's malloc_info.
#ifndef HUMMOCK_OBSERVE_PRINT_H
#define HUMMOCK_OBSERVE_PRINT_H

#include <stdio.h>

namespace hummock::observe {

// A table of the process's figures to `fd`, line by line; takes no memory and no lock of stdio.
void print(int fd);

// The options in effect, a line each, below one that names the process.
void print_options();

// The same figures in the form of glibc's malloc_info. 0, or the error of the stream.
int print_xml(FILE* out);

}  // namespace hummock::observe

#endif  // HUMMOCK_OBSERVE_PRINT_H
