#!/usr/bin/env python3
"""Real programs with and without the library preloaded: what they print and make must be the same.

Exit 77: the program is not installed here.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import preload  # noqa: E402

TIMEOUT = 1500


class Missing(Exception):
    pass


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Missing(f"{program} is not installed")


def environment(library, extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HUMMOCK_", "LD_", "GIT_"))}
    env.update({"LC_ALL": "C", "TZ": "UTC"}, **extra)
    if library:
        env["LD_PRELOAD"] = library
    return env


def run(command, library, folder, stdin=None, check=True, **extra):
    """What the command printed on both its outputs, and its status."""
    done = subprocess.run(
        command, env=environment(library, extra), cwd=folder, input=stdin, timeout=TIMEOUT,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    )
    if check and done.returncode != 0:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return f"{done.stdout}\nstatus {done.returncode}"


# ---- The programs: each gives text that must not depend on the allocator ---------------------------


def python_with_tests():
    for python in (sys.executable, "/usr/bin/python3", shutil.which("python3")):
        if python and os.path.exists(python):
            probe = [python, "-c", "import test.test_json, test.test_threading, test.test_subprocess"]
            if subprocess.run(probe, capture_output=True).returncode == 0:
                return python
    raise Missing("Python's own tests are not installed (Debian: libpython3-testsuite)")


def python_tests(module, **options):
    def app(library, folder):
        # Without Python's own pools every object comes from malloc.
        text = run([python_with_tests(), "-m", "test", "-v", module], library, folder, check=False,
                   PYTHONMALLOC="malloc" if library else "default", HOME=folder, **options)
        ends = re.findall(r"^(Ran \d+ tests|OK.*|FAILED.*|status \d+)", text, re.M)
        return "\n".join(sorted(re.findall(r"^(?:ERROR|FAIL): .*", text, re.M)) + ends)

    return app


PERL = r"""
my (%count, @all);
my $x = 12345;
for my $i (1 .. 200000) {
  $x = ($x * 1103515245 + 12345) & 0x7fffffff;
  my $word = join '', map { chr(97 + ($x >> $_) % 26) } 3, 7, 11;
  $count{$word}++;
  push @all, "$word:$i" if $i % 7 == 0;
}
my @sorted = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
print scalar(@sorted), " $sorted[0] $count{$sorted[0]}\n";
my $text = join ',', sort @all;
$text =~ s/([a-f])([a-m]+):/$2$1=/g;
print length($text), ' ', unpack('%32C*', $text), "\n";
my @tree;
sub grow { my $d = shift; return $d ? { l => grow($d - 1), r => grow($d - 1), s => 'x' x $d } : [1 .. 3] }
sub size { my $t = shift; return ref $t eq 'ARRAY' ? @$t : size($t->{l}) + size($t->{r}) + length $t->{s} }
print size(grow(14)), "\n" for 1 .. 3;
my $big = '';
$big .= chr($_ % 256) for 1 .. 3_000_000;
print length($big), ' ', unpack('%32C*', $big), "\n";
"""


def perl(library, folder):
    need("perl")
    return run(["perl", "-e", PERL], library, folder, PERL_HASH_SEED="0")


SQL = """
create table t(id integer primary key, k text, v real, b blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000)
  insert into t select i, printf('%08x', (i * 2654435761) % 4294967296), i * 0.5, zeroblob(i % 300) from n;
create index by_k on t(k);
select count(*), sum(v), sum(length(b)), min(k), max(k) from t;
select substr(k, 1, 1) as g, count(*), round(avg(v), 3) from t group by g order by g;
select count(*) from t a join t b on a.k = b.k where a.id % 3 = 0;
update t set k = k || 'x' where id % 5 = 0;
delete from t where id % 7 = 0;
select count(*), group_concat(k, '') like '%x%' from t where id < 20000;
create virtual table f using fts5(body);
insert into f select 'word' || (id % 977) || ' ' || k from t limit 20000;
select count(*) from f where f match 'word5';
vacuum;
pragma integrity_check;
select count(*), sum(id) from t;
"""


def sqlite(library, folder):
    need("sqlite3")
    sql = SQL.replace("using fts5(body)", "using fts4(body)")
    return run(["sqlite3", os.path.join(folder, "t.db")], library, folder, stdin=sql)


def git(library, folder):
    need("git")
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "n"), ("EMAIL", "e@x"), ("DATE", "2020-01-01T00:00:00Z"))}
    who.update(HOME=folder, GIT_CONFIG_NOSYSTEM="1")
    repo = os.path.join(folder, "repo")
    os.mkdir(repo)

    def call(*arguments, where=repo):
        return run(["git", *arguments], library, where, **who)

    texts = [call("init", "-q", "-b", "main")]
    for commit in range(25):
        for number in range(40):
            with open(os.path.join(repo, f"file{number}"), "w") as file:
                for line in range(200):
                    file.write(f"{number} {line} {(line * 7919 + commit * (line % 5 == 0)) % 1000003}\n")
        call("add", "-A")
        texts.append(call("commit", "-q", "--allow-empty", "-m", f"commit {commit}"))
    call("checkout", "-q", "-b", "side", "HEAD~10")
    with open(os.path.join(repo, "side"), "w") as file:
        file.write("side\n")
    call("add", "-A")
    call("commit", "-q", "-m", "side")
    call("checkout", "-q", "main")
    texts.append(call("merge", "-q", "side", "-m", "merge"))
    texts.append(call("log", "--stat", "--format=%H %s"))
    texts.append(call("diff", "HEAD~5"))
    texts.append(call("blame", "file3"))
    call("gc", "-q", "--aggressive")
    texts.append(call("fsck", "--full", "--no-progress"))
    call("clone", "-q", repo, os.path.join(folder, "clone"), where=folder)
    texts.append(call("rev-parse", "HEAD^{tree}", where=os.path.join(folder, "clone")))
    texts.append(call("grep", "-c", "99", "HEAD"))
    return "\n".join(texts)


CXX = """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>
template <int N> struct Tower { std::map<std::string, std::vector<typename Tower<N - 1>::Value>> m; using Value = std::variant<int, std::string, std::pair<int, char[N + 1]>>;
  int go(const std::string& s) { auto& v = m[s]; v.resize(N); Tower<N - 1> below; return std::visit([](auto&& x) { return (int)sizeof(x); }, typename Tower<N>::Value(N)) + below.go(s) + (int)v.size(); } };
template <> struct Tower<0> { using Value = int; int go(const std::string&) { return 0; } };
int main(int argc, char** argv) {
  std::regex r("(a|b)+c"); std::unordered_map<std::string, std::function<int(int)>> f;
  for (int i = 0; i < argc; ++i) f[argv[i]] = [i](int x) { return x + i; };
  std::vector<std::string> w(argv, argv + argc); std::sort(w.begin(), w.end(), std::greater<>());
  std::mt19937_64 g(1); std::cout << std::regex_match(w[0], r) << Tower<16>().go(w[0]) << g() << f.size();
}
"""


def gxx(library, folder):
    need("g++")
    with open(os.path.join(folder, "unit.cc"), "w") as file:
        file.write(CXX)
    text = run(["g++", "-std=c++20", "-O2", "-c", "unit.cc", "-o", "unit.o"], library, folder)
    text += run(["sha256sum", "unit.o"], None, folder)
    run(["g++", "unit.o", "-o", "unit"], library, folder)
    return text + run(["./unit", "abc", "x"], library, folder)


def redis(library, folder):
    need("redis-server", "redis-cli")
    socket = os.path.join(folder, "s")
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder, "--save", "",
         "--io-threads", "2", "--io-threads-do-reads", "yes"],
        env=environment(library, {}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cli(*arguments, stdin=None):
        return run(["redis-cli", "-s", socket, *arguments], None, folder, stdin=stdin)

    try:
        for _ in range(TIMEOUT * 10):
            if os.path.exists(socket) or server.poll() is not None:
                break
            time.sleep(0.05)
        lines = []
        for i in range(20000):
            lines.append(f"SET k{i} {'v' * (i % 700)}{i}")
            if i % 3 == 0:
                lines.append(f"DEL k{i // 2}")
            if i % 5 == 0:
                lines.append(f"HSET h{i % 50} f{i} {i}")
            if i % 11 == 0:
                lines.append(f"ZADD z {i} m{i % 4000}")
        texts = [cli("--pipe", stdin="\n".join(lines) + "\n")]
        texts.append(cli("--raw", "EVAL", "local s = 0 for i = 0, 19999 do local v = redis.call('GET', 'k' .. i) "
                         "if v then s = s + #v end end return s", "0"))
        texts += [cli("DBSIZE"), cli("HLEN", "h5"), cli("ZCARD", "z"), cli("--raw", "GET", "k19999")]
        texts.append(str("used_memory:" in cli("INFO", "memory")))
        cli("BGSAVE")
        for _ in range(TIMEOUT * 5):
            if "rdb_bgsave_in_progress:0" in cli("INFO", "persistence"):
                break
            time.sleep(0.1)
        texts.append(str("rdb_last_bgsave_status:ok" in cli("INFO", "persistence")))
        texts += [cli("CONFIG", "SET", "maxmemory", "0"), cli("FLUSHALL"), cli("DBSIZE")]
        run(["redis-cli", "-s", socket, "SHUTDOWN", "NOSAVE"], None, folder, check=False)
        texts.append(f"server ended with {server.wait(TIMEOUT)}")
        return "\n".join(re.sub(r"(Last reply received|All data transferred).*\n", "", t) for t in texts)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()


APPS = {
    "python_threading": python_tests("test_threading"),
    "python_json": python_tests("test_json"),
    "python_ast": python_tests("test_ast"),
    # It counts all descriptors of its children, and the page of figures has one.
    "python_subprocess": python_tests("test_subprocess", HUMMOCK_OBSERVE="off"),
    "perl": perl,
    "sqlite": sqlite,
    "git": git,
    "gxx": gxx,
    "redis": redis,
}


def outcome(app, library):
    with tempfile.TemporaryDirectory(prefix="hummock-app-") as folder:
        text = app(library, folder)
        return text.replace(folder, "FOLDER")


def compare(name, library):
    app = APPS[name]
    plain, ours = outcome(app, None), outcome(app, library)
    if plain == ours:
        print(f"{name}: the same {len(plain.splitlines())} lines with and without")
        return True
    print(f"{name}: DIFFERENT\n--- without\n{plain[-3000:]}\n--- with\n{ours[-3000:]}")
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True)
    parser.add_argument("app", choices=APPS)
    options = parser.parse_args()
    library = preload.name_of(options.library)
    try:
        # Python's own tests know hangs and races on a busy machine; those do not come twice.
        tries = 2 if options.app.startswith("python") else 1
        return 0 if any(compare(options.app, library) for _ in range(tries)) else 1
    except Missing as reason:
        print("skipped:", reason)
        return 77
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        print(f"{options.app}: FAILED {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
