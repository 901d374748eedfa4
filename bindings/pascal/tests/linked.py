"""A name without blanks for a folder: Free Pascal passes it to ld unquoted."""

import atexit
import pathlib
import shutil
import tempfile


def linked(folder):
    made = tempfile.mkdtemp(prefix="hummock-link-")
    atexit.register(shutil.rmtree, made)
    link = pathlib.Path(made) / "libraries"
    link.symlink_to(folder)
    return link
