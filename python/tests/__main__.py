"""``python3 python/tests``: every test, summed up as cargo's test programs do."""

import os
import sys
import unittest

result = unittest.TextTestRunner(verbosity=2).run(
    unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)))
)
failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
skipped = len(result.skipped)
verdict = "ok" if result.wasSuccessful() and result.testsRun > 0 else "FAILED"
print(f"test result: {verdict}. {result.testsRun - failed - skipped} passed; {failed} failed; {skipped} ignored")
sys.exit(verdict != "ok")
