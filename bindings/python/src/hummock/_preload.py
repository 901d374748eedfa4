"""Names of libraries as the loader takes them in LD_PRELOAD, which it cuts at blanks and colons."""

import hashlib
import os
import stat

_CUT = " :$"


def _own_folder(path):
    """A folder of ours that nobody else may write to; False when somebody else was there first."""
    try:
        os.mkdir(path, 0o700)
        os.chmod(path, 0o755)  # programs that the first one starts may run as another user
    except FileExistsError:
        pass
    found = os.lstat(path)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & 0o022 == 0


def _link(link, target):
    try:
        if os.readlink(link) == target:
            return
    except OSError:
        pass
    fresh = f"{link}.{os.getpid()}"
    if os.path.lexists(fresh):
        os.unlink(fresh)
    os.symlink(target, fresh)
    os.replace(fresh, link)  # several may do this at once


def name_of(library):
    """The path, or where it has a blank, a colon or a dollar, that of a link that leads to it. It stays, for programs
    that outlive this one; /tmp/hummock-<user> is also where `hummock run` has its own. OSError: no place for one."""
    if not any(cut in library for cut in _CUT):
        return library
    file = "".join("_" if letter in _CUT else letter for letter in os.path.basename(library))
    inner = hashlib.sha256(os.fsencode(library)).hexdigest()[:16]
    for place in ("/tmp", "/var/tmp", "/dev/shm", os.environ.get("XDG_RUNTIME_DIR", "")):
        if not place.startswith("/") or any(cut in place for cut in _CUT):
            continue
        folder = f"{place}/hummock-{os.geteuid()}"
        try:
            if _own_folder(folder) and _own_folder(f"{folder}/{inner}"):
                _link(f"{folder}/{inner}/{file}", library)
                return f"{folder}/{inner}/{file}"
        except OSError:
            continue
    raise OSError(f"{library} cannot be preloaded: blanks and colons separate paths there, and there is no place for a link")
