#!/usr/bin/env python3
"""`hummock profile`, used as people use it.

Usage: profile.py TOOL LIBRARY TARGET known|process|files|hostile
"""

import sys
import unittest

import files
import hostile
import known
import running

PARTS = {"known": (known.Known, known.KilledByItsGroup), "process": (running.Process,), "files": (files.Files,),
         "hostile": (hostile.Hostile,)}

if __name__ == "__main__":
    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, PARTS[sys.argv[4]]))
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
