# SPDX-License-Identifier: BSD-3-Clause
"""The page as a C header: its text, and the policy that lets a browser run what is in it alone.

usage: embed.py PAGE.html HEADER.h
"""
import base64
import hashlib
import re
import sys


def digest(page, tag):
    """Of what the one element of that kind holds; CSP level 3, section 6.7.3."""
    (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.S)
    return "'sha256-" + base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode() + "'"


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        page = f.read()
    policy = (
        f"default-src 'none'; script-src {digest(page, 'script')}; style-src {digest(page, 'style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write(f'/* Made of mr_page.html. */\n#define MR_PAGE_POLICY "{policy}"\nstatic const char mr_page[] =\n')
        for line in page.splitlines():
            quoted = line.replace("\\", "\\\\").replace('"', '\\"')
            f.write(f'\t"{quoted}\\n"\n')
        f.write("\t;\n")


main()
