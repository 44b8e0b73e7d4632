"""Exit code 1 unless every test of an XUnit file passed."""

import sys
import xml.etree.ElementTree as tree

cases = list(tree.parse(sys.argv[1]).getroot().iter("testcase"))
bad = [case for case in cases if any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))]
for case in bad[:20]:
    print("not passed:", case.get("classname"), case.get("name"))
print(f"{len(cases)} tests, {len(bad)} not passed")
sys.exit(bool(bad) or not cases)
