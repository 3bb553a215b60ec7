# SPDX-License-Identifier: BSD-3-Clause
"""Copies a source with one fault in it: mutate.py NAME SOURCE COPY.

A fault is a list of (text, text in its place). Each text must occur exactly once: when
the source has changed so that a fault no longer fits, this fails and so does the build.
"""
import sys

EXIT_IN_WAIT = (
    "\t\tif (mr_load_acquire(&slot->ready) == seq + 1)\n\t\t\treturn MR_LEFT_NOT;\n"
    "\t\tif (mr_load_relaxed(&w->host->exit) != 0)\n\t\t\treturn MR_LEFT_EXIT;\n"
)
LEFT = "\t\tif (left != MR_LEFT_NOT)\n\t\t\tbreak;\n"
SLOT = "\t\tchanged = mr_kernel_slot(&w, b, work, in, out);\n"
DONE = "\t\t\tmr_store_release(&out->done, seq + 1);\n"
PLAIN = "\t\t\tout->plain = (uint32_t)plain;\n"
THREAD = "if (mr_kernel_view(lane, rx_port, &in[i], to, &v) ||\n\t\t\t\tmr_kernel_blank(tick, &v))\n\t\t\t\tmr_kernel_chain_thread"
RESULT = "\t\t\tchanged |= mr_kernel_result(&out[i], &v, &in[i]);\n\t\t\tfrom ="
FULL = "\treturn mr_ring_outstanding(r) > r->mask;\n"

FAULTS = {
    # A release or an acquire of the hand-over weakened to relaxed.
    "ready_relaxed": [("mr_store_release(&s->ready,", "mr_store_relaxed(&s->ready,")],
    # DPDK lib/gpudev/gpudev.c rte_gpu_comm_populate_list_pkts: nothing orders the packets before
    # READY.
    "ready_mapped_relaxed": [("mr_store_release(&to->ready,", "mr_store_relaxed(&to->ready,")],
    "done_relaxed": [("mr_store_release(&out->done,", "mr_store_relaxed(&out->done,")],
    # NVIDIA/l2fwd-nv src/kernel.cu persistent kernel: what READY hands over is read without an acquire.
    "wait_relaxed": [("mr_load_acquire(&slot->ready)", "mr_load_relaxed(&slot->ready)")],
    "take_relaxed": [("mr_load_acquire(&s->done)", "mr_load_relaxed(&s->done)")],
    # A hand-over before what is handed over.
    "done_before_verdicts": [(DONE, ""), (SLOT, DONE[1:] + SLOT)],
    "plain_after_done": [(PLAIN + DONE, DONE + PLAIN)],
    # DPDK lib/gpudev/gpudev.c:1121: an item is free before its count is 0, so a refill is lost.
    "ready_before_count": [
        ("\ts->count = (uint16_t)count;\n", ""),
        ("\tr->head++;\n", "\ts->count = (uint16_t)count;\n\tr->head++;\n"),
    ],
    # A slot used again too early.
    "full_ignored": [(FULL, "\t(void)r;\n\treturn false;\n")],
    "release_before_done": [("mr_load_acquire(&s->done) == tail + 1;", "s != NULL;")],
    # Off by one lap, or by one.
    "full_off_by_one": [(FULL, "\treturn mr_ring_outstanding(r) > r->mask + 1;\n")],
    "full_not_wrapping": [(FULL, "\treturn r->head >= r->tail + r->mask + 1;\n")],
    "init_ready_given": [("->ready = seq + 1 - slots;", "->ready = seq + 1;")],
    # DPDK lib/gpudev/gpudev.c:957: item 0 of a list is never set free, and the list's memory is
    # not zeroed.
    "init_done_done": [("->done = seq + 1 - slots;", "->done = seq + 1;")],
    "ready_any_lap": [
        ("mr_load_acquire(&slot->ready) == seq + 1", "mr_load_acquire(&slot->ready) >= seq + 1")
    ],
    "worker_skips": [("seq += w.lane->workers)", "seq += w.lane->workers + 1)")],
    "worker_shares": [("seq = w.lane->first_seq + map->worker;;", "seq = w.lane->first_seq + 0 * map->worker;;")],
    # The stop.
    "exit_not_read": [
        (EXIT_IN_WAIT, EXIT_IN_WAIT[: EXIT_IN_WAIT.index("\t\tif (mr_load_relaxed")])
    ],
    "exit_drops_slot": [
        (LEFT, LEFT + "\t\tif (mr_load_relaxed(&w.host->exit) != 0) {\n\t\t\tleft = MR_LEFT_EXIT;\n\t\t\tbreak;\n\t\t}\n")
    ],
    "counters_not_published": [
        ("\tif (b->thread == 0 && left != MR_LEFT_DIED) {\n\t\tmr_kernel_publish(&w);\n",
         "\tif (b->thread == 0 && left != MR_LEFT_DIED) {\n")
    ],
    # Beside the slot.
    "slot_not_masked": [("size_t at = seq & (w.lane->slots - 1);", "size_t at = seq - w.lane->first_seq;")],
    "result_beside": [(RESULT, RESULT.replace("&out[i]", "&out[i + 4]"))],
    # Another packet's data.
    # NVIDIA/l2fwd-nv src/kernel.cu:143: the guard of every item looks at item 0.
    "first_descriptor_for_all": [(THREAD, THREAD.replace("in[i]", "in[0]"))],
    "plain_always": [("out->plain = (uint32_t)plain;", "out->plain = (uint32_t)(plain | 1);")],
    # Accesses outside their memory, for the fuzzers to find.
    "problem_beyond": [("if (ps->count++ >= MR_PROBLEMS_MAX)", "if (ps->count++ > MR_PROBLEMS_MAX)")],
    "control_beyond": [("p[0] = p[1] = '?';", "p[0] = p[1] = text[strlen(text) + 1] = '?';")],
    "descriptor_beyond": [("desc[i] =", "desc[i + n / 24] =")],
    "capability_beyond": [
        ("bool visited[MR_PCI_CONFIG_BYTES / 4]", "bool visited[MR_PCI_CONFIG_BYTES / 4 - 32]")
    ],
    "window_beyond": [("number % MR_GEN_WINDOW / 64", "number % (2 * MR_GEN_WINDOW) / 64")],
    "list_beyond": [("i <= to && i < count", "i <= to && count != 0")],
    "row_beyond": [("if (*ret_count == rows_max)", "if (*ret_count > rows_max)")],
    "backlog_beyond": [("q->head++ & q->mask;", "q->head++ % (q->mask + 2);")],
}


def main():
    name, source, copy = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        text = f.read()
    for old, new in FAULTS[name]:
        if text.count(old) != 1:
            sys.exit(f"mutate.py: {name}: {source} has {text.count(old)} times: {old}")
        text = text.replace(old, new)
    with open(copy, "w", encoding="utf-8") as f:
        f.write(text)


main()
