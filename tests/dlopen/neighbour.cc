extern "C" __attribute__((visibility("default"))) int neighbour() {
  return 7;
}
