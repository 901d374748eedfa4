"""The Hummock memory allocator.

    python -m hummock run script.py     runs a program on it

    import hummock
    hummock.is_active()                 is this process's malloc Hummock's?
    hummock.stats().live                bytes in use; and what else Stats has
    hummock.trim()                      gives free memory back to the system
"""

from hummock._library import (ClassStats, Stats, is_active, library_path, option, set_option, stats, trim,
                              version)

__version__ = version
__all__ = ["ClassStats", "Stats", "is_active", "library_path", "option", "set_option", "stats", "trim", "version"]
