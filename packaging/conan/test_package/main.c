#include <hummock/hummock.h>
#include <stdio.h>

int main(void) {
  puts(hummock_is_active() ? "on Hummock" : "not on Hummock");
  return !hummock_is_active();
}
