"""Names of libraries as the loader takes them in LD_PRELOAD, which it cuts at blanks and colons."""

import atexit
import os
import shutil
import tempfile


def name_of(library):
    """The library's path; where it has a blank, a colon or a dollar, that of a link that lives as long as we do."""
    path = os.path.abspath(library)
    if not any(cut in path for cut in " :$"):
        return path
    folder = tempfile.mkdtemp(prefix="hummock-test-", dir="/tmp")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)  # tests run programs as other users, too
    link = os.path.join(folder, os.path.basename(path).replace(" ", "_").replace(":", "_").replace("$", "_"))
    os.symlink(path, link)
    return link
