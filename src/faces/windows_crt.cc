// A run time's functions jump here, whoever calls them and however he found them; the run time's own calls
// inside it may still go to its heap. So each block is asked whose it is.
#include "faces/windows_crt.h"

#include <windows.h>

#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "faces/family.h"
#include "faces/windows_divert.h"
#include "faces/windows_run.h"

namespace hummock::faces {
namespace {

constexpr size_t kMostRuntimes = 4;
constexpr size_t kMostFunctions = 40;

struct Runtime {
  HMODULE module;
  HANDLE(__cdecl* heap)();                 // null before it has started
  int(__cdecl* call_new_handler)(size_t);  // 1: try again
  int*(__cdecl* error)();
  size_t count;
  Diversion diversions[kMostFunctions];
};

Runtime runtimes[kMostRuntimes];  // under the loader's lock, but for readers of those that are served
size_t runtime_count;

// What a run time is asked for, on our heap. Blocks from before, or from inside it, are on its own.
template <size_t Number>
struct Served {
  static Runtime& runtime() { return runtimes[Number]; }
  static HANDLE old_heap() { return runtime().heap(); }

  static void* none(int error) {
    if (int* of_program = runtime().error()) *of_program = error;
    return nullptr;
  }

  static void* __cdecl malloc(size_t size) {
    void* block = heap::allocate(size);
    return __builtin_expect(block != nullptr, true) ? block : none(ENOMEM);
  }

  // Zero to its end, beyond what was asked: _recalloc cannot know how much that was.
  static void* __cdecl calloc(size_t count, size_t size) {
    void* block = zeroed_array(count, size);
    if (block == nullptr) return none(ENOMEM);
    clear_from(block, count * size);
    return block;
  }

  static void __cdecl free(void* block) {
    if (block == nullptr) return;
    if (__builtin_expect(heap::owns(block), true)) return heap::release(block);
    HeapFree(old_heap(), 0, block);
  }

  static void* __cdecl realloc(void* block, size_t size) {
    if (block == nullptr) return malloc(size);
    if (size == 0) {
      free(block);
      return nullptr;
    }
    void* moved = heap::owns(block) ? heap::reallocate(block, size) : HeapReAlloc(old_heap(), 0, block, size);
    return moved != nullptr ? moved : none(ENOMEM);
  }

  static size_t __cdecl msize(void* block) {
    if (block == nullptr) {
      none(EINVAL);
      return static_cast<size_t>(-1);
    }
    return heap::owns(block) ? usable_size(block) : HeapSize(old_heap(), 0, block);
  }

  static void clear_from(void* block, size_t from) {
    memset(static_cast<char*>(block) + from, 0, msize(block) - from);
  }

  static void* __cdecl recalloc(void* block, size_t count, size_t size) {
    if (block == nullptr) return calloc(count, size);
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return none(ENOMEM);
    const size_t before = msize(block);
    void* moved = realloc(block, bytes);
    if (moved != nullptr) clear_from(moved, before < bytes ? before : bytes);
    return moved;
  }

  // In place or not at all.
  static void* __cdecl expand(void* block, size_t size) {
    if (block == nullptr) return none(EINVAL);
    if (!heap::owns(block)) return HeapReAlloc(old_heap(), HEAP_REALLOC_IN_PLACE_ONLY, block, size);
    return size <= usable_size(block) ? block : none(ENOMEM);
  }

  static void* __cdecl new_block(size_t size) {
    for (;;) {
      if (void* block = heap::allocate(size)) return block;
      if (runtime().call_new_handler == nullptr || runtime().call_new_handler(size) == 0) break;
    }
    return throw_bad_alloc(size);
  }

  // Only the run time itself can throw its exception: its operator is what it was, from now on.
  static void* throw_bad_alloc(size_t size) {
    void*(__cdecl * original)(size_t) = nullptr;
    for (size_t i = 0; i < runtime().count; ++i) {
      Diversion& each = runtime().diversions[i];
      if (each.target != reinterpret_cast<void*>(&new_block)) continue;
      write_jump(each, false);
      original = reinterpret_cast<void*(__cdecl*)(size_t)>(each.function);
    }
    return original != nullptr ? original(size) : nullptr;
  }

  // ---- Aligned blocks, laid out as the run times do it: the block's start stands just below ------

  static void** below(void* aligned) {
    return reinterpret_cast<void**>(reinterpret_cast<uintptr_t>(aligned) & ~(sizeof(void*) - 1)) - 1;
  }

  // `offset` bytes into the block are aligned.
  static void* __cdecl aligned_offset_malloc(size_t size, size_t alignment, size_t offset) {
    if (!is_power_of_two(alignment) || (offset != 0 && offset >= size)) return none(EINVAL);
    if (alignment < sizeof(void*)) alignment = sizeof(void*);
    size_t bytes;
    if (__builtin_add_overflow(size, alignment + 2 * sizeof(void*), &bytes)) return none(ENOMEM);
    void* block = malloc(bytes);
    if (block == nullptr) return nullptr;
    const uintptr_t least = reinterpret_cast<uintptr_t>(block) + 2 * sizeof(void*) + offset;
    void* aligned = reinterpret_cast<void*>(((least + alignment - 1) & ~(alignment - 1)) - offset);
    *below(aligned) = block;
    return aligned;
  }

  static void* __cdecl aligned_malloc(size_t size, size_t alignment) {
    return aligned_offset_malloc(size, alignment, 0);
  }

  static void __cdecl aligned_free(void* aligned) {
    if (aligned != nullptr) free(*below(aligned));
  }

  static size_t __cdecl aligned_msize(void* aligned, size_t, size_t) {
    if (aligned == nullptr) return msize(nullptr);
    const size_t before = static_cast<char*>(aligned) - static_cast<char*>(*below(aligned));
    return msize(*below(aligned)) - before;
  }

  static void* move_aligned(void* aligned, size_t size, size_t alignment, size_t offset, bool zero) {
    if (aligned != nullptr && size == 0) {
      aligned_free(aligned);
      return nullptr;
    }
    void* moved = aligned_offset_malloc(size, alignment, offset);
    if (moved == nullptr) return nullptr;
    const size_t had = aligned != nullptr ? aligned_msize(aligned, 0, 0) : 0;
    const size_t kept = had < size ? had : size;
    if (kept != 0) memcpy(moved, aligned, kept);
    if (zero) memset(static_cast<char*>(moved) + kept, 0, aligned_msize(moved, 0, 0) - kept);
    aligned_free(aligned);
    return moved;
  }

  static void* __cdecl aligned_offset_realloc(void* aligned, size_t size, size_t alignment, size_t offset) {
    return move_aligned(aligned, size, alignment, offset, false);
  }
  static void* __cdecl aligned_realloc(void* aligned, size_t size, size_t alignment) {
    return move_aligned(aligned, size, alignment, 0, false);
  }
  static void* __cdecl aligned_offset_recalloc(void* aligned, size_t count, size_t size, size_t alignment,
                                               size_t offset) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return none(ENOMEM);
    return move_aligned(aligned, bytes, alignment, offset, true);
  }
  static void* __cdecl aligned_recalloc(void* aligned, size_t count, size_t size, size_t alignment) {
    return aligned_offset_recalloc(aligned, count, size, alignment, 0);
  }
};

struct Row {
  const char* name;
  void* target;
};

template <size_t Number>
const Row* rows() {
  using S = Served<Number>;
#define HUMMOCK_ROW(name, function) \
  { name, reinterpret_cast<void*>(&S::function) }
  static const Row table[] = {
    HUMMOCK_ROW("malloc", malloc),
    HUMMOCK_ROW("_malloc_base", malloc),
    HUMMOCK_ROW("calloc", calloc),
    HUMMOCK_ROW("_calloc_base", calloc),
    HUMMOCK_ROW("realloc", realloc),
    HUMMOCK_ROW("_realloc_base", realloc),
    HUMMOCK_ROW("free", free),
    HUMMOCK_ROW("_free_base", free),
    HUMMOCK_ROW("_msize", msize),
    HUMMOCK_ROW("_msize_base", msize),
    HUMMOCK_ROW("_recalloc", recalloc),
    HUMMOCK_ROW("_recalloc_base", recalloc),
    HUMMOCK_ROW("_expand", expand),
    HUMMOCK_ROW("_expand_base", expand),
    HUMMOCK_ROW("_aligned_malloc", aligned_malloc),
    HUMMOCK_ROW("_aligned_free", aligned_free),
    HUMMOCK_ROW("_aligned_msize", aligned_msize),
    HUMMOCK_ROW("_aligned_realloc", aligned_realloc),
    HUMMOCK_ROW("_aligned_recalloc", aligned_recalloc),
    HUMMOCK_ROW("_aligned_offset_malloc", aligned_offset_malloc),
    HUMMOCK_ROW("_aligned_offset_realloc", aligned_offset_realloc),
    HUMMOCK_ROW("_aligned_offset_recalloc", aligned_offset_recalloc),
#if defined(_WIN64)
    HUMMOCK_ROW("??2@YAPEAX_K@Z", new_block),
    HUMMOCK_ROW("??_U@YAPEAX_K@Z", new_block),
    HUMMOCK_ROW("??3@YAXPEAX@Z", free),
    HUMMOCK_ROW("??_V@YAXPEAX@Z", free),
#else
    HUMMOCK_ROW("??2@YAPAXI@Z", new_block),
    HUMMOCK_ROW("??_U@YAPAXI@Z", new_block),
    HUMMOCK_ROW("??3@YAXPAX@Z", free),
    HUMMOCK_ROW("??_V@YAXPAX@Z", free),
#endif
    {nullptr, nullptr},
  };
#undef HUMMOCK_ROW
  return table;
}

const Row* rows_of(size_t number) {
  using Rows = const Row*();
  static Rows* const all[kMostRuntimes] = {rows<0>, rows<1>, rows<2>, rows<3>};
  return all[number]();
}

bool is_diverted(const Runtime& runtime, const void* function) {
  for (size_t i = 0; i < runtime.count; ++i)
    if (runtime.diversions[i].function == function) return true;
  return false;
}

template <class F>
void look_up(HMODULE module, const char* name, F* function) {
  *function = reinterpret_cast<F>(reinterpret_cast<void*>(GetProcAddress(module, name)));
}

// All of its functions or none: a block must find its way back.
bool serve(HMODULE module) {
  if (runtime_count == kMostRuntimes) return false;
  Runtime& runtime = runtimes[runtime_count];
  runtime = {};
  runtime.module = module;
  look_up(module, "_get_heap_handle", &runtime.heap);
  look_up(module, "_callnewh", &runtime.call_new_handler);
  look_up(module, "_errno", &runtime.error);
  if (runtime.heap == nullptr || runtime.error == nullptr) return false;
  for (const Row* row = rows_of(runtime_count); row->name != nullptr; ++row) {
    void* function = reinterpret_cast<void*>(GetProcAddress(module, row->name));
    if (function == nullptr || is_diverted(runtime, function)) continue;
    runtime.diversions[runtime.count++] = {static_cast<unsigned char*>(function), row->target, 0, 0};
  }
  if (!prepare(module, runtime.diversions, runtime.count)) return false;
  ++runtime_count;
  for (size_t i = 0; i < runtime.count; ++i) write_jump(runtime.diversions[i], true);
  return true;
}

// ---- Which, and what comes of it ----------------------------------------------------------------

constexpr const wchar_t* kNames[] = {L"ucrtbase.dll", L"msvcrt.dll",   L"msvcr120.dll",
                                     L"msvcr110.dll", L"msvcr100.dll", L"msvcr90.dll"};

WindowsRun* told;

void add(char* list, size_t room, const char* text) {
  const size_t length = strlen(list);
  if (length + strlen(text) + 2 > room) return;
  if (length != 0) strcat(list, " ");
  strcat(list, text);
}

void serve_named(HMODULE module, const wchar_t* name) {
  char text[32] = {};
  for (size_t i = 0; name[i] != 0 && i + 1 < sizeof text; ++i) text[i] = static_cast<char>(name[i]);
  if (serve(module))
    add(told->served, sizeof told->served, text);
  else
    add(told->refused, sizeof told->refused, text);
}

// What ntdll hands to whom it tells of a DLL, before that runs.
struct UnicodeString {
  USHORT bytes, room;
  const wchar_t* text;
};
struct DllLoaded {
  ULONG flags;
  const UnicodeString* path;
  const UnicodeString* name;
  void* base;
};

void CALLBACK on_dll(ULONG reason, const DllLoaded* dll, void*) {
  if (reason != 1) return;
  for (const wchar_t* name : kNames) {
    const size_t length = wcslen(name);
    if (dll->name->bytes == length * sizeof *name && _wcsnicmp(dll->name->text, name, length) == 0)
      serve_named(static_cast<HMODULE>(dll->base), name);
  }
}

bool calls_us(HMODULE module) {
  auto* base = reinterpret_cast<char*>(module);
  auto* headers =
      reinterpret_cast<IMAGE_NT_HEADERS*>(base + reinterpret_cast<IMAGE_DOS_HEADER*>(base)->e_lfanew);
  const auto& imports = headers->OptionalHeader.DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT];
  if (imports.Size == 0) return false;
  for (auto* each = reinterpret_cast<IMAGE_IMPORT_DESCRIPTOR*>(base + imports.VirtualAddress);
       each->FirstThunk != 0; ++each) {
    for (auto* slot = reinterpret_cast<void**>(base + each->FirstThunk); *slot != nullptr; ++slot)
      for (size_t i = 0; i < runtime_count; ++i)
        if (is_diverted(runtimes[i], *slot)) return true;
  }
  return false;
}

// Modules of the program's own: those of the system use the run times in every process.
uint32_t count_users(HMODULE self) {
  wchar_t system[MAX_PATH], path[MAX_PATH];
  const UINT length = GetWindowsDirectoryW(system, MAX_PATH);
  uint32_t users = 0;
  MEMORY_BASIC_INFORMATION region;
  for (char* at = nullptr; VirtualQuery(at, &region, sizeof region) != 0;
       at = static_cast<char*>(region.BaseAddress) + region.RegionSize) {
    auto* module = static_cast<HMODULE>(region.AllocationBase);
    if (region.Type != MEM_IMAGE || region.BaseAddress != region.AllocationBase || module == self) continue;
    if (GetModuleFileNameW(module, path, MAX_PATH) == 0) continue;
    if (_wcsnicmp(path, system, length) != 0 && calls_us(module)) ++users;
  }
  return users;
}

}  // namespace

void serve_runtimes() {
  wchar_t name[64];
  swprintf(name, sizeof name / sizeof *name, kRunMapping, static_cast<unsigned long>(GetCurrentProcessId()));
  HANDLE mapping = OpenFileMappingW(FILE_MAP_WRITE, FALSE, name);
  if (mapping == nullptr) return;
  told = static_cast<WindowsRun*>(MapViewOfFile(mapping, FILE_MAP_WRITE, 0, 0, sizeof(WindowsRun)));
  CloseHandle(mapping);
  if (told == nullptr || told->size != sizeof(WindowsRun)) return;
  HMODULE self;
  // For ever: its functions are jumped to.
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                     reinterpret_cast<const wchar_t*>(&serve_runtimes), &self);
  for (const wchar_t* each : kNames)
    if (HMODULE module = GetModuleHandleW(each)) serve_named(module, each);
  told->users = count_users(self);
  LONG(NTAPI * tell)(ULONG, void(CALLBACK*)(ULONG, const DllLoaded*, void*), void*, void**);
  look_up(GetModuleHandleW(L"ntdll.dll"), "LdrRegisterDllNotification", &tell);
  static void* cookie;
  if (tell != nullptr) tell(0, on_dll, nullptr, &cookie);
}

}  // namespace hummock::faces
