/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fuzzer's input as packets of one stream: how loss is found and the modulus, a byte each; then
 * a byte of what changes, and the bytes of it, for each packet.
 */
#ifndef FUZZ_SEEN_H
#define FUZZ_SEEN_H

#include "mr_format.h"

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next bytes, the first of them the lowest; 0 behind the end. */
uint64_t input_take(struct input *in, uint32_t bytes);

/* How loss is found, and the modulus; the packet before the first. */
void input_begin(struct input *in, struct mr_seen *ret_seen);

/*
 * The next packet: what the one before was, but for what the input changes. Time goes on in steps
 * of `ps`, by 1000 of them or as many as time_bytes say; returns what changed.
 */
uint32_t input_change(struct input *in, struct mr_seen *s, uint64_t ps, uint32_t time_bytes,
	uint32_t units_bytes);

#endif
