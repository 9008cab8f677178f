"""Reads JUnit reports, one after another, from its standard input; prints how many tests passed and failed."""

import re
import sys

text = sys.stdin.read()
cases = re.findall(r"<testcase\b([^>]*?)(/>|>(.*?)</testcase>)", text, re.DOTALL)
failed = sum("<failure" in body or "<error" in body for _, _, body in cases)
skipped = sum("<skipped" in body for _, _, body in cases)
print(len(cases) - failed - skipped, failed)
