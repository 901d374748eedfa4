"""libhummock.so, by ctypes. In a process that was started on it, this is the process's malloc."""

import collections
import contextlib
import ctypes
import dataclasses
import errno
import json
import os
import pathlib
import warnings

_CLASS_COUNT = 82
_FIGURES = ("live", "committed", "dirty", "resident", "mapped", "peak", "metadata", "threads", "heaps",
            "large_blocks", "large_bytes", "purged")


class _ClassStats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("block_size", "slabs", "live_blocks")]


class _Stats(ctypes.Structure):
    """hummock_stats_t of hummock.h."""

    _fields_ = [(name, ctypes.c_size_t) for name in ("size", *_FIGURES, "classes")]
    _fields_ += [("per_class", _ClassStats * _CLASS_COUNT)]


class _TagStats(ctypes.Structure):
    """hummock_tag_stats_t of observe.h."""

    _fields_ = [("size", ctypes.c_size_t), ("bytes", ctypes.c_uint64), ("blocks", ctypes.c_uint64)]


_VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclasses.dataclass(frozen=True)
class TagTotal:
    """What threads with a tag have drawn from slabs so far."""

    bytes: int
    blocks: int


@dataclasses.dataclass(frozen=True)
class ClassStats:
    """One size class: bytes of a block, number of slabs, number of blocks handed out."""

    block_size: int
    slabs: int
    live_blocks: int


@dataclasses.dataclass(frozen=True)
class Stats:
    """Figures of the whole process, in bytes unless named otherwise."""

    active: bool  #: is this process's malloc Hummock's? If not, the figures are of a library without work
    live: int  #: room of live blocks
    committed: int  #: slabs and large blocks, which hold the live blocks
    dirty: int  #: free, and not yet returned to the system
    resident: int  #: what the system says the process has in memory
    mapped: int  #: address space taken from the system
    peak: int  #: highest committed + dirty so far
    metadata: int  #: the allocator's own records
    threads: int  #: threads with a heap now, their number
    heaps: int  #: heaps made by hummock_heap_create, their number
    large_blocks: int  #: blocks above 64 KiB, their number
    large_bytes: int  #: and their room
    purged: int  #: returned to the system so far
    classes: tuple  #: a ClassStats for each size class


def library_path():
    """The path of libhummock.so. LD_PRELOAD takes none with a blank or a colon: `python -m hummock path` does."""
    return str(pathlib.Path(__file__).resolve().parent / "libhummock.so")


def _load():
    # The one that the process runs on, if it does: `hummock run` brings its own.
    library = ctypes.CDLL(None)
    if not hasattr(library, "hummock_is_active") or library.hummock_is_active() == 0:
        library = ctypes.CDLL(library_path())
    library.hummock_stats.argtypes = [ctypes.POINTER(_Stats)]
    library.hummock_stats_json.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    library.hummock_stats_json.restype = ctypes.c_size_t
    library.hummock_tag.argtypes = [ctypes.c_uint32]
    library.hummock_tag.restype = ctypes.c_uint32
    library.hummock_tag_stats.argtypes = [ctypes.c_uint32, ctypes.POINTER(_TagStats)]
    library.hummock_heap_walk.argtypes = [ctypes.c_void_p, _VISIT, ctypes.c_void_p]
    library.hummock_slab_utilisation.argtypes = [ctypes.c_void_p]
    library.hummock_set_hooks.argtypes = [ctypes.c_void_p]
    library.hummock_profile_start.argtypes = [ctypes.c_size_t]
    library.hummock_profile_write.argtypes = [ctypes.c_char_p]
    library.hummock_trim.argtypes = [ctypes.c_size_t]
    library.hummock_version.restype = ctypes.c_char_p
    library.hummock_option_get.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    library.hummock_option_set.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    return library


_hummock = _load()

#: The version of the library, as "1.0.0".
version = _hummock.hummock_version().decode()


def is_active():
    """True when this process's malloc is Hummock's; else the figures are of a library without work."""
    return _hummock.hummock_is_active() != 0


def _active_or_warn(function):
    active = is_active()
    if not active:
        warnings.warn(f"hummock.{function}(): this process's malloc is not Hummock's, so there is nothing to tell of; "
                      "start it by: python -m hummock run", RuntimeWarning, stacklevel=3)
    return active


def stats():
    """The figures now; a RuntimeWarning when Hummock is not active. The cost is one step a slab: for a monitor,
    not for a loop."""
    active = _active_or_warn("stats")
    raw = _Stats(size=ctypes.sizeof(_Stats))
    _hummock.hummock_stats(ctypes.byref(raw))
    known = raw.per_class[1:min(raw.classes, _CLASS_COUNT)]  # index 0 is not used
    classes = tuple(ClassStats(row.block_size, row.slabs, row.live_blocks) for row in known)
    return Stats(active, *(getattr(raw, name) for name in _FIGURES), classes)


def figures():
    """All figures, as `hummock stats --json` prints them, in dictionaries and lists; a RuntimeWarning when Hummock
    is not active."""
    _active_or_warn("figures")
    room = _hummock.hummock_stats_json(None, 0) + 16384  # there may be more a moment later
    text = ctypes.create_string_buffer(room)
    _hummock.hummock_stats_json(text, room)
    return json.loads(text.value)


def tag(number):
    """What this thread allocates from now on is for the tag; the one before is returned."""
    return _hummock.hummock_tag(number)


@contextlib.contextmanager
def tagged(number):
    """What this thread allocates within the `with` is for the tag."""
    before = tag(number)
    try:
        yield
    finally:
        tag(before)


def tag_total(number):
    """Bytes and blocks that threads with the tag have drawn from slabs; KeyError: no thread had it."""
    raw = _TagStats(size=ctypes.sizeof(_TagStats))
    if _hummock.hummock_tag_stats(number, ctypes.byref(raw)) != 0:
        raise KeyError(number)
    return TagTotal(raw.bytes, raw.blocks)


def live_blocks():
    """How many live blocks there are of each size, as a Counter. One call of Python a block: for a look, not
    for a monitor. OSError: not to be had, as in checked mode."""
    sizes = collections.Counter()

    def note(_, __, size):
        sizes[size] += 1
        return 1

    error = _hummock.hummock_heap_walk(None, _VISIT(note), None)
    if error != 0:
        raise OSError(error, "blocks cannot be told of one by one")
    return sizes


def slab_utilisation(address):
    """How much of the slab of the block at the address is in use, in percent; 100 for a large block. None: there
    is no live block of Hummock's. For addresses that ctypes or array.buffer_info() tell."""
    percent = _hummock.hummock_slab_utilisation(address)
    return percent if percent >= 0 else None


def set_hooks(table):
    """Has the functions of a hummock_hooks_t called for each block that comes and goes; None: no more. `table` is its
    address, in an extension in C, where it must stay for ever. The functions cannot be Python's: any thread calls
    them, in the middle of malloc, whether it has the interpreter or not. OSError: not to be had, as in checked mode."""
    error = _hummock.hummock_set_hooks(table)
    if error != 0:
        raise OSError(error, os.strerror(error))


def _require(error, path=None):
    if error != 0:
        raise OSError(error, os.strerror(error), path)


def profile_start(mean=0):
    """Samples one block in `mean` bytes from now on, with its stack of C functions; 0: as the option profile says,
    1: every block. `hummock profile PID` does the same from outside. OSError: not to be had, as in checked mode."""
    if mean < 0:
        raise ValueError("mean is a number of bytes")
    _require(_hummock.hummock_profile_start(mean))


def profile_stop():
    """No block is sampled any more. What was sampled stays until it is freed."""
    _require(_hummock.hummock_profile_stop())


def profile_write(path):
    """Writes the profile to a file that `pprof` reads. OSError: it cannot be written, or there is no profile."""
    _require(_hummock.hummock_profile_write(os.fsencode(path)), path)


def trim(keep=0):
    """Gives free memory back to the system, all but about `keep` bytes; True when there was some."""
    if keep < 0:
        raise ValueError("keep is a number of bytes")
    return _hummock.hummock_trim(keep) != 0


def option(name):
    """The value of an option as text; KeyError when there is none of that name."""
    room = ctypes.create_string_buffer(512)  # of `log` it is a path
    if _hummock.hummock_option_get(name.encode(), room, len(room)) != 0:
        raise KeyError(name)
    return room.value.decode()


def set_option(name, value):
    """Gives an option a value. KeyError: no such option; ValueError: not such a value; PermissionError: the
    option can be given only when the program starts."""
    error = _hummock.hummock_option_set(name.encode(), str(value).encode())
    if error == errno.ENOENT:
        raise KeyError(name)
    if error == errno.EPERM:
        raise PermissionError(f"{name} can be given only when the program starts")
    if error != 0:
        raise ValueError(f"{name} cannot be {value}")
