#include "../preload/surface.cc"
