#include "../preload/surface_operators.cc"
