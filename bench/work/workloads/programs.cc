// Real programs, each in a process of its own on inputs that are made here: what an allocator is for.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "child.h"
#include "clock.h"
#include "program_inputs.h"
#include "run.h"

namespace {

void require_alone(Run& run, const char* package) {
  if (run.threads() != 1) fail(2, "--threads: this workload has one thread");
  if (!is_installed(run.options.workload->program))
    fail(2, "%s is not installed; on Debian: apt-get install %s", run.options.workload->program, package);
}

// Pass after pass of a program that ends by itself.
void repeat(Run& run, const char* const* arguments, const char* input) {
  while (run.more_children()) run.add_child(run_child(run, arguments, input), 1);
}

void run_python(Run& run) {
  require_alone(run, "python3");
  const Folder folder;
  Folder::write("load.py", kPython, sizeof kPython - 1);
  // Not what else is called so: a script that chooses a version takes longer than the load.
  const char* python = access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3";
  const char* const command[] = {python, "-S", "load.py", nullptr};
  setenv("PYTHONMALLOC", "malloc", 1);
  repeat(run, command, nullptr);
}

void run_lua(Run& run) {
  require_alone(run, "lua5.4");
  const Folder folder;
  Folder::write("load.lua", kLua, sizeof kLua - 1);
  static constexpr const char* kCommand[] = {"lua5.4", "load.lua", nullptr};
  repeat(run, kCommand, nullptr);
}

void run_sqlite(Run& run) {
  require_alone(run, "sqlite3");
  const Folder folder;
  Folder::write("load.sql", kSql, sizeof kSql - 1);
  static constexpr const char* kCommand[] = {"sqlite3", "-batch", ":memory:", nullptr};
  repeat(run, kCommand, "load.sql");
}

void run_compiler(Run& run) {
  require_alone(run, "g++");
  const Folder folder;
  Folder::write("load.cc", kCpp, sizeof kCpp - 1);
  static constexpr const char* kCommand[] = {"g++",     "-std=c++17", "-O1",    "-c",
                                             "load.cc", "-o",         "load.o", nullptr};
  repeat(run, kCommand, nullptr);
}

// A history of 300 changes to 60 files, as git fast-import reads it.
void write_history() {
  FILE* file = fopen("history", "w");
  if (file == nullptr) fail(3, "the history cannot be written");
  for (int change = 1; change <= 300; ++change) {
    fprintf(file, "commit refs/heads/main\ncommitter A <a@b> %d +0000\ndata <<END\nchange %d\nEND\n",
            1600000000 + change * 60, change);
    for (int part = 0; part < 4; ++part) {
      const int name = (change * 7 + part * 13) % 60;
      fprintf(file, "M 644 inline dir%d/file%d\ndata <<END\n", name % 6, name);
      for (int line = 0; line < 120; ++line)
        fprintf(file, "line %d of file %d, last changed at %d\n", line, name,
                (line * 31 + name) % 97 < 5 ? change : 0);
      fprintf(file, "END\n");
    }
  }
  if (fclose(file) != 0) fail(3, "the history cannot be written");
}

void run_git(Run& run) {
  require_alone(run, "git");
  const Folder folder;
  write_history();
  setenv("HOME", ".", 1);
  setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
  unsetenv("GIT_DIR");
  static constexpr const char* kInit[] = {"git", "init", "--quiet", "--bare", "repository", nullptr};
  static constexpr const char* kImport[] = {"git", "-C", "repository", "fast-import", "--quiet", nullptr};
  static constexpr const char* kLog[] = {"git", "-C", "repository", "log", "-p", "--stat", "main", nullptr};
  run_child(run, kInit);
  run_child(run, kImport, "history");
  repeat(run, kLog, nullptr);
}

// A connection to the server, as soon as it listens.
int connect_to(const char* place) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", place);
  for (int tries = 0; tries < 1000; ++tries) {
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return connection;
    close(connection);
    usleep(10000);
  }
  fail(3, "redis-server does not listen");
}

// The server alone runs on what is preloaded; a pass is a server's life.
void run_redis(Run& run) {
  require_alone(run, "redis-server redis-tools");
  constexpr uint64_t kRequests = 60000, kKinds = 5;
  const Folder folder;
  static constexpr const char* kServer[] = {
      "redis-server", "--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no", nullptr};
  static constexpr const char* kClient[] = {"redis-benchmark",
                                            "-s",
                                            "socket",
                                            "-q",
                                            "-n",
                                            "60000",
                                            "-c",
                                            "20",
                                            "-P",
                                            "8",
                                            "-r",
                                            "20000",
                                            "-d",
                                            "100",
                                            "-t",
                                            "set,get,lpush,lpop,hset",
                                            nullptr};
  while (run.more_children()) {
    const pid_t server = start_child(kServer, nullptr);
    const int connection = connect_to("socket");
    const uint64_t started = nanoseconds();
    const pid_t client = start_child(kClient, nullptr, Preload::kDrop);
    const double seconds = wait_for_child(client, kClient[0], started, run, server).seconds;
    static constexpr char kEnd[] = "SHUTDOWN NOSAVE\r\n";
    if (write(connection, kEnd, sizeof kEnd - 1) < 0) fail(3, "redis-server is gone");
    ChildUse use = wait_for_child(server, kServer[0], started, run, 0);
    close(connection);
    use.seconds = seconds;
    run.add_child(use, kRequests * kKinds);
  }
}

constexpr Plan kNormal = {.seconds = 1};
constexpr Plan kFull = {.seconds = 5};

constexpr Workload program(const char* name, const char* program, const char* title, const char* description,
                           Plan quick, void (*run)(Run&)) {
  return {.name = name,
          .group = "programs",
          .title = title,
          .description = description,
          .unit = "pass",
          .threads = {{1}},
          .sizes = {},
          .quick = quick,
          .normal = kNormal,
          .full = kFull,
          .run = run,
          .program = program};
}

constexpr Workload kWorkloads[] = {
    program("python", "python3", "Python",
            "python3, with malloc in place of its own pools, builds, sorts and joins dictionaries, lists and "
            "strings, and parses JSON.",
            {.seconds = 0.2}, run_python),
    program("sqlite", "sqlite3", "SQLite",
            "sqlite3 fills tables in memory, indexes, joins, sorts and groups them.", {.seconds = 0.2},
            run_sqlite),
    program("git", "git", "Git", "git log -p --stat over 300 changes to 60 files.", {}, run_git),
    program("compiler", "g++", "A compiler", "g++ -O1 compiles a file of templates, maps and strings.", {},
            run_compiler),
    program("redis", "redis-benchmark", "Redis",
            "redis-server sets, gets, pushes and pops for 20 clients of redis-benchmark, which runs on the "
            "system's allocator. A request is an operation.",
            {}, run_redis),
    program("lua", "lua5.4", "Lua", "lua5.4 builds and drops tables, closures and strings.", {}, run_lua),
};

}  // namespace

Family program_family() {
  return family_of(kWorkloads);
}
