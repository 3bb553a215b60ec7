# SPDX-License-Identifier: BSD-3-Clause
"""Alerts, dashboard and runbook speak of metrics that exist, and the runbook of all of them.

What exists is read where it is declared: the list of counters and of reasons, and the names
that the Prometheus rendering writes out. A name of a metric is looked for in every alert and
every panel. In the runbook's tables of symptoms each counter and each other metric stands in the
second column of a row, and in that of statuses each exit status in the first.
"""
import json
import os
import re

import tree

NAME = re.compile(r"\bmillrace_\w*[a-z0-9]\b(?!\()")


def read(path):
    with open(os.path.join(tree.SOURCE, path), encoding="utf-8") as f:
        return f.read()


def counters():
    found = re.findall(r"^COUNTER\((\w+),", read("lib/stats/mr_counters.def"), re.M)
    reasons = re.findall(r"^REASON\((\w+),", read("lib/ring/mr_reasons.def"), re.M)
    return set(found) | {f"gpu_drop_{r}" for r in reasons}


def stage_counters():
    """Those that a stage has, which are samples of one metric."""
    found = set()
    for path in tree.files(".cu", ".h"):
        if path.startswith("lib/stage/"):
            found |= set(re.findall(r"^\s*\[\w+(?:##\w+)?\] = \{\"(\w+)\",", read(path), re.M))
    return found


def metric_of(counter):
    return f"millrace_{counter[:-3]}_seconds_total" if counter.endswith("_ns") else f"millrace_{counter}_total"


def plain(metric):
    """As the runbook has it."""
    return metric.removeprefix("millrace_").removesuffix("_total")


v = tree.Verdict()
written_out = set(re.findall(r'"(millrace_\w*[a-z0-9])"', read("lib/stats/mr_report_prom.c")))
metrics = {metric_of(c) for c in counters()} | written_out
# A summary's own two.
parts = {m for m in written_out if m.endswith(("_sum", "_count"))}
metrics -= parts

texts = {p: read(p) for p in ("deploy/prometheus/millrace.rules.yml", "deploy/README.md")}
dashboard = json.loads(read("deploy/grafana/millrace.json"))
texts["deploy/grafana/millrace.json"] = "\n".join(
    [t["expr"] for p in dashboard["panels"] for t in p["targets"]]
    + [t["query"] for t in dashboard["templating"]["list"]]
)
for path, text in texts.items():
    for name in sorted(set(NAME.findall(text))):
        v.checked += 1
        if name not in metrics | parts:
            v.bad(f"{path}: there is no metric '{name}'")

SYMPTOMS = "| symptom | counter | cause | what to do |"
cells, told = [], False
for line in texts["deploy/README.md"].splitlines():
    told = line == SYMPTOMS or (told and line.startswith("|"))
    if not told or line == SYMPTOMS or line.startswith("|---"):
        continue
    v.checked += 1
    cells.append([c.strip() for c in line.strip("|").split("|")])
    if len(cells[-1]) != 4 or not all(cells[-1]):
        v.bad(f"deploy/README.md: no row of four columns: {line}")
rows = {name for c in cells if len(c) == 4 for name in re.findall(r"`([^`]*)`", c[1])}
for name in sorted({plain(m) for m in metrics}):
    v.checked += 1
    if name not in rows:
        v.bad(f"deploy/README.md: no row for '{name}'")
for name in sorted(rows - {plain(m) for m in metrics} - stage_counters()):
    v.bad(f"deploy/README.md: a row is about '{name}', which is no metric")
statuses = [l for l in texts["deploy/README.md"].splitlines() if l.startswith("| ")]
for name, status in re.findall(r"MR_EXIT_(\w+) = (\d+)", read("app/mr_cmd.h")):
    v.checked += 1
    if not any(l.startswith(f"| {status} |") for l in statuses):
        v.bad(f"deploy/README.md: no row for status {status} ({name})")
v.done("names of metrics")
