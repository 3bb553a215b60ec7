# SPDX-License-Identifier: BSD-3-Clause
"""Alerts, dashboard and runbook speak of metrics that exist, and the runbook of all of them.

What exists is read where it is declared: the list of counters and of reasons, and the names
that the Prometheus rendering writes out. A name of a metric is looked for in every alert and
every panel; in the runbook's table each counter, each other metric and each exit status has a
row.
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
    t["expr"] for p in dashboard["panels"] for t in p["targets"]
) + "\n".join(t["query"] for t in dashboard["templating"]["list"])
for path, text in texts.items():
    for name in sorted(set(NAME.findall(text))):
        v.checked += 1
        if name not in metrics | parts:
            v.bad(f"{path}: there is no metric '{name}'")

table = [l for l in texts["deploy/README.md"].splitlines() if l.startswith("| ")]
rows = set(re.findall(r"`(\w+)`", " ".join(l.split("|")[1] for l in table)))
for name in sorted({plain(m) for m in metrics}):
    v.checked += 1
    # Those that only describe, or are a stage's own.
    if name not in rows and not name.endswith("_info") and name not in ("stage_events", "in_flight_packets",
        "latency_max_seconds", "port_link_up"):  # fmt: skip
        v.bad(f"deploy/README.md: no row for '{name}'")
for name in sorted(rows):
    if name not in {plain(m) for m in metrics}:
        v.bad(f"deploy/README.md: a row is about '{name}', which is no metric")
for name, status in re.findall(r"MR_EXIT_(\w+) = (\d+)", read("app/mr_cmd.h")):
    v.checked += 1
    if not any(l.startswith(f"| {status} |") for l in table):
        v.bad(f"deploy/README.md: no row for status {status} ({name})")
v.done("names of metrics")
