#include "../preload/replaced_operators.cc"
