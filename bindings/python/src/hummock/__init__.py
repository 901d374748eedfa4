"""The Hummock memory allocator.

    python -m hummock run script.py     runs a program on it

    import hummock
    hummock.is_active()                 is this process's malloc Hummock's?
    hummock.stats().live                bytes in use; and what else Stats has
    hummock.figures()                   all that `hummock stats --json` prints
    with hummock.tagged(17): ...        what is allocated within counts for tag 17: hummock.tag_total(17)
    hummock.profile_start()             samples who asks for memory; profile_write("x.heap") is for pprof
    hummock.trim()                      gives free memory back to the system
"""

from hummock._library import (ClassStats, Stats, TagTotal, figures, is_active, library_path, live_blocks, option,
                              profile_start, profile_stop, profile_write, set_hooks, set_option, slab_utilisation, stats,
                              tag, tag_total, tagged, trim, version)

__version__ = version
__all__ = ["ClassStats", "Stats", "TagTotal", "figures", "is_active", "library_path", "live_blocks", "option",
           "profile_start", "profile_stop", "profile_write", "set_hooks", "set_option", "slab_utilisation", "stats", "tag", "tag_total", "tagged", "trim", "version"]
