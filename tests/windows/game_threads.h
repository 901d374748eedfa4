// Threads of the game: what they do, and its scenarios about them.
#ifndef HUMMOCK_TESTS_WINDOWS_GAME_THREADS_H
#define HUMMOCK_TESTS_WINDOWS_GAME_THREADS_H

#include "game.h"

inline Dll dll;

inline constexpr int kThreads = 8;

// The bodies of threads: blocks left for each other by the thousand; some blocks, and the end.
DWORD WINAPI stress(void* number);
DWORD WINAPI use_and_leave(void*);
// Eight of them, to their end.
void run_threads(DWORD(WINAPI* body)(void*));

bool is_filled(const void* block, unsigned char value, size_t size);

void threads_stress();
void threads_come_and_go();
void calls_after_detach();
void fibers();

#endif  // HUMMOCK_TESTS_WINDOWS_GAME_THREADS_H
