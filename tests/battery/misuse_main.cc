// misuse --list | misuse CASE [quiet]: does one wrong thing with memory, then lives on.
//
// Exit 0: nobody noticed and nothing came of it. 42: the allocator then handed out memory it must not.
// 1: it refuses sound requests. 77: not possible here. The allocator may end the process at any time: that is
// what is looked for.
#include <string.h>

#include "misuse.h"

int main(int argc, char** argv) {
  using namespace battery;
  const Cases families[] = {double_free_cases,       double_free_more_cases, invalid_free_cases,
                            invalid_free_more_cases, wrong_call_cases,       overflow_cases,
                            after_free_cases};
  if (argc == 3 && strcmp(argv[2], "quiet") == 0) fill_with_zeros();
  return run_named(argc, argv, families, [](const Case& c) { probation(c.probe); });
}
