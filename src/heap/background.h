// The optional thread that gives memory back while the program does nothing (option `background`).
#ifndef HUMMOCK_HEAP_BACKGROUND_H
#define HUMMOCK_HEAP_BACKGROUND_H

namespace hummock::heap {

// Starts the thread if the option asks for it and none runs; again in the child of a fork.
void start_background();

}  // namespace hummock::heap

#endif  // HUMMOCK_HEAP_BACKGROUND_H
