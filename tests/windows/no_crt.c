/* A program without a C run time of the system. */
#include <windows.h>

void start(void) {
  ExitProcess(0);
}
