"""Exit code 1 unless an XUnit file has every test of a version, all passed.

    totals.py RESULT.xml VERSION MODULE
"""

import sys
import xml.etree.ElementTree as tree

# docs/spec/tosa.md section 10.6; those of the draft with the two deprecated operators.
TESTS = {"1.0.2": 876, "1.1.0-draft": 1291 + 78 + 76}

result, version, module = sys.argv[1:]
cases = list(tree.parse(result).getroot().iter("testcase"))
bad = [case for case in cases if any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))]
for case in bad[:20]:
    print("not passed:", case.get("classname"), case.get("name"))
# The runner also lists the comparison of each result with the reference model, as a case of its own.
tests = [case for case in cases if case.get("classname") == module]
expected = TESTS.get(version)
print(f"{len(tests)} tests of {expected}, {len(cases) - len(tests)} comparisons, {len(bad)} not passed")
sys.exit(bool(bad) or len(tests) != expected)
