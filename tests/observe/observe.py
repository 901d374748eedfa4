#!/usr/bin/env python3
"""Running processes, looked at and changed from outside by the command line tool.

Usage: observe.py TOOL LIBRARY TARGET SOURCE outside|requests|start|top|group|percentages|pressure|exporter|many|hostile|rights|output
"""

import sys
import unittest

import asking
import exporter
import group
import hostile
import outside
import screen
import start

PARTS = {"exporter": exporter.Exporter, "top": screen.Top, "many": asking.Many, "group": group.Limits,
         "pressure": group.Pressure, "percentages": group.Percentages, "hostile": hostile.Hostile, "rights": hostile.Rights, "output": hostile.Output, "outside": outside.Outside, "requests": asking.Requests, "start": start.Start}

if __name__ == "__main__":
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(PARTS[sys.argv[5]])
    assert suite.countTestCases() != 0
    sys.exit(not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful())
