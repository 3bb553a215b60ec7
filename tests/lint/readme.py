# SPDX-License-Identifier: BSD-3-Clause
"""README.md says what is there: its files exist, its exit statuses are those of the code."""
import os
import re

import tree

TOP = r"(app|config|deploy|drivers|lib|tests|\.ci)"


def main():
    verdict = tree.Verdict()
    readme = tree.text("README.md")
    order = readme.partition("\n## Reading order\n")[2].partition("\n## ")[0]
    if not re.findall(r"`[^`]+`", order):
        verdict.bad("README.md: no section 'Reading order' that names files")
    named = set(re.findall(r"\]\(([^):#]+)\)", readme))
    for quoted in re.findall(r"`([^`\n]+)`", readme):
        named.update(w for w in quoted.split() if re.match(TOP + r"/[\w./-]*$", w))
    for path in sorted(named):
        verdict.checked += 1
        if not os.path.exists(os.path.join(tree.SOURCE, path)):
            verdict.bad(f"README.md: {path} does not exist")
    statuses = set(re.findall(r"^\| (\d+) \|", readme, re.M))
    in_code = set(re.findall(r"MR_EXIT_\w+ = (\d+)", tree.text("app/mr_cmd.h")))
    for s in statuses ^ in_code:
        verdict.bad(f"README.md: exit status {s} is not in both the table and app/mr_cmd.h")
    verdict.checked += len(in_code)
    rows = tree.text("app/mr_cmd_table.c").partition("mr_cmds[] = {")[2].partition("\n};")[0]
    commands = set(re.findall(r'^\t\{"(\w+)",', rows, re.M))
    if not commands:
        verdict.bad("app/mr_cmd_table.c: no commands are found")
    for c in sorted(commands):
        verdict.checked += 1
        if f"millrace {c}" not in readme:
            verdict.bad(f"README.md: the command 'millrace {c}' is not named")
    verdict.done("names")


main()
