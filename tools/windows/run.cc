// hummock.exe: `hummock run -- program.exe ...` starts a Windows program as it is with malloc, free, new and
// delete of its C run time on Hummock. The program stands still until hummock.dll is in it and has told which
// run times it serves; when none of them is the program's, it does not run at all.
#include <windows.h>

#include <shellapi.h>
#include <stdio.h>

#include <string>

#include "base/version.h"
#include "faces/windows_run.h"

namespace {

using hummock::faces::WindowsRun;

constexpr int kUsage = 2, kCannotServe = 125, kCannotStart = 126, kNotFound = 127;
constexpr DWORD kPatience = 60'000;  // milliseconds for the DLL to load

const char kHelp[] =
    "usage: hummock run [OPTION]... [--] PROGRAM [ARGUMENT]...\n"
    "Starts a program with malloc, free, new and delete of its C run time (msvcrt.dll, ucrtbase.dll,\n"
    "msvcr90.dll to msvcr120.dll) on Hummock.\n"
    "\n"
    "  --conf OPTIONS  key:value,key:value, over those of hummock.conf beside hummock.dll\n"
    "  --stats         print statistics when the program ends\n"
    "  --verbose       say which run times are served\n"
    "\n"
    "Exit status: the program's own. Before it starts: 125 Hummock cannot serve it; 126 it cannot be "
    "started;\n"
    "127 it was not found; 2 wrong use. Programs that it starts in turn keep their own malloc.\n";

struct Options {
  bool verbose = false;
  std::wstring conf;
  int program = 0;  // its place among the arguments
};

int fail(int status, const wchar_t* what, const wchar_t* of = L"") {
  fwprintf(stderr, L"hummock: %ls%ls\n", of, what);
  return status;
}

// 0, or an exit status after it has said what is wrong.
int read_options(int count, wchar_t** arguments, Options* options) {
  int i = 2;
  for (; i < count && arguments[i][0] == L'-'; ++i) {
    const std::wstring word = arguments[i];
    if (word == L"--") {
      ++i;
      break;
    }
    if (word == L"--verbose") {
      options->verbose = true;
    } else if (word == L"--stats") {
      options->conf += L",stats:exit";
    } else if (word == L"--conf" && i + 1 < count) {
      options->conf += std::wstring(L",") + arguments[++i];
    } else {
      fwprintf(stderr, L"hummock run: there is no option %ls, or it lacks its value; hummock run --help\n",
               word.c_str());
      return kUsage;
    }
  }
  if (i == count) return fail(kUsage, L"run: name a program; hummock --help");
  options->program = i;
  return 0;
}

// As programs take it apart again.
std::wstring quoted(const std::wstring& word) {
  if (!word.empty() && word.find_first_of(L" \t\"") == std::wstring::npos) return word;
  std::wstring text = L"\"";
  size_t slashes = 0;
  for (const wchar_t c : word) {
    if (c == L'"') text.append(slashes + 1, L'\\');
    slashes = c == L'\\' ? slashes + 1 : 0;
    text += c;
  }
  return text.append(slashes, L'\\') + L"\"";
}

void set_conf(const std::wstring& added) {
  if (added.empty()) return;
  wchar_t before[4096] = L"";
  if (GetEnvironmentVariableW(L"HUMMOCK_CONF", before, 4096) >= 4096) before[0] = 0;
  const std::wstring all = before[0] != 0 ? before + added : added.substr(1);
  SetEnvironmentVariableW(L"HUMMOCK_CONF", all.c_str());
}

bool is_as_wide(HANDLE process) {
  BOOL its = FALSE, ours = FALSE;
  return IsWow64Process(process, &its) && IsWow64Process(GetCurrentProcess(), &ours) && its == ours;
}

std::wstring library() {
  wchar_t path[MAX_PATH];
  GetModuleFileNameW(nullptr, path, MAX_PATH);
  const std::wstring self = path;
  return self.substr(0, self.find_last_of(L"\\/") + 1) + L"hummock.dll";
}

// Loads the DLL there: LoadLibraryW stands at the same address in all processes.
bool load(HANDLE process, const std::wstring& path) {
  const size_t bytes = (path.size() + 1) * sizeof(wchar_t);
  void* there = VirtualAllocEx(process, nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (there == nullptr || !WriteProcessMemory(process, there, path.c_str(), bytes, nullptr)) return false;
  const FARPROC load_library = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "LoadLibraryW");
  HANDLE thread = CreateRemoteThread(
      process, nullptr, 0, reinterpret_cast<LPTHREAD_START_ROUTINE>(reinterpret_cast<void*>(load_library)),
      there, 0, nullptr);
  if (thread == nullptr) return false;
  DWORD loaded = 0;
  const bool ended = WaitForSingleObject(thread, kPatience) == WAIT_OBJECT_0;
  if (ended) GetExitCodeThread(thread, &loaded);
  CloseHandle(thread);
  if (ended) VirtualFreeEx(process, there, 0, MEM_RELEASE);
  return loaded != 0;
}

// Why Hummock does not serve the program, or empty.
std::string why_not(const PROCESS_INFORMATION& program, const WindowsRun& told) {
  if (!is_as_wide(program.hProcess))
    return sizeof(void*) == 8 ? "it has 32 bits: take the hummock.exe and hummock.dll of x86"
                              : "it has 64 bits: take the hummock.exe and hummock.dll of x64";
  if (!load(program.hProcess, library()))
    return "hummock.dll, which must stand beside hummock.exe, does not load there";
  if (told.refused[0] != 0) return std::string("the functions of ") + told.refused + " cannot be diverted";
  if (told.users == 0)
    return "none of its modules takes malloc from a C run time of the system: it is linked into the program, "
           "or the program has a heap of its own";
  return "";
}

BOOL WINAPI leave_to_program(DWORD) {
  return TRUE;
}

int run(const Options& options, int count, wchar_t** arguments) {
  std::wstring line;
  for (int i = options.program; i < count; ++i)
    line += (i == options.program ? L"" : L" ") + quoted(arguments[i]);
  set_conf(options.conf);
  STARTUPINFOW start = {};
  start.cb = sizeof start;
  PROCESS_INFORMATION program;
  if (!CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_SUSPENDED, nullptr, nullptr,
                      &start, &program)) {
    const DWORD error = GetLastError();
    const bool missing = error == ERROR_FILE_NOT_FOUND || error == ERROR_PATH_NOT_FOUND;
    fwprintf(stderr, L"hummock: %ls: %ls (error %lu)\n", arguments[options.program],
             missing ? L"was not found" : L"cannot be started", error);
    return missing ? kNotFound : kCannotStart;
  }
  wchar_t name[64];
  swprintf(name, sizeof name / sizeof *name, hummock::faces::kRunMapping, program.dwProcessId);
  HANDLE mapping =
      CreateFileMappingW(INVALID_HANDLE_VALUE, nullptr, PAGE_READWRITE, 0, sizeof(WindowsRun), name);
  auto* told =
      mapping == nullptr
          ? nullptr
          : static_cast<WindowsRun*>(MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, sizeof(WindowsRun)));
  if (told != nullptr) told->size = sizeof *told;
  const std::string reason = told == nullptr ? "no memory to share with it" : why_not(program, *told);
  if (!reason.empty()) {
    TerminateProcess(program.hProcess, kCannotServe);
    fwprintf(stderr, L"hummock: %ls: not run: %hs\n", arguments[options.program], reason.c_str());
    return kCannotServe;
  }
  if (options.verbose)
    fwprintf(stderr, L"hummock: %ls: %u module(s) of it on Hummock; served: %hs\n",
             arguments[options.program], told->users, told->served);
  SetConsoleCtrlHandler(leave_to_program, TRUE);
  ResumeThread(program.hThread);
  WaitForSingleObject(program.hProcess, INFINITE);
  DWORD status = kCannotStart;
  GetExitCodeProcess(program.hProcess, &status);
  return static_cast<int>(status);
}

}  // namespace

int wmain(int count, wchar_t** arguments) {
  const std::wstring command = count > 1 ? arguments[1] : L"--help";
  const bool asks = command == L"--help" || (count > 2 && std::wstring(arguments[2]) == L"--help");
  if (asks) {
    fputs(kHelp, stdout);
    return 0;
  }
  if (command == L"--version" || command == L"version") {
    printf("hummock %s\n", hummock::base::kVersion);
    return 0;
  }
  if (command != L"run")
    return fail(kUsage, L": there is no such command; the nearest is run", command.c_str());
  Options options;
  const int status = read_options(count, arguments, &options);
  return status != 0 ? status : run(options, count, arguments);
}
