#include "../preload/surface_libc.cc"
