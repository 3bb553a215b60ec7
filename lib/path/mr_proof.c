/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_proof.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FRAME_MIN 60u
#define ETHERTYPE_LOCAL 0x88b5u

const char *mr_proof_kind_name(enum mr_proof_kind kind)
{
	static const char *const names[] = {
		[MR_PROOF_MEMORY] = "memory",
		[MR_PROOF_REGISTRATION] = "registration",
		[MR_PROOF_COUNTERS] = "counters",
		[MR_PROOF_WINDOW] = "window",
		[MR_PROOF_READBACK] = "readback",
		[MR_PROOF_WATCH] = "watch",
	};

	return names[kind];
}

void mr_proof_set(struct mr_proof *p, enum mr_check_verdict verdict, const char *fmt, ...)
{
	va_list ap;

	if (p->value[0] != '\0' && verdict <= p->verdict)
		return;
	p->verdict = verdict;
	va_start(ap, fmt);
	vsnprintf(p->value, sizeof(p->value), fmt, ap);
	va_end(ap);
}

bool mr_proof_judge(enum mr_proof_path path, const enum mr_check_verdict verdict[MR_PROOF_KINDS],
	enum mr_proof_kind *ret_why)
{
	/* What each kind has to be at least: PASS, or anything but FAIL. */
	static const bool must_pass[][MR_PROOF_KINDS] = {
		[MR_PROOF_DIRECT_NIC] = {[MR_PROOF_MEMORY] = true,
			[MR_PROOF_REGISTRATION] = true,
			[MR_PROOF_COUNTERS] = true,
			[MR_PROOF_READBACK] = true},
		[MR_PROOF_DIRECT_STAND_IN] = {[MR_PROOF_MEMORY] = true,
			[MR_PROOF_REGISTRATION] = true,
			[MR_PROOF_WINDOW] = true,
			[MR_PROOF_READBACK] = true},
		[MR_PROOF_DIRECT_SOFTWARE] = {[MR_PROOF_MEMORY] = true, [MR_PROOF_WINDOW] = true},
		[MR_PROOF_HOST] = {[MR_PROOF_MEMORY] = true},
	};

	for (int k = 0; k < MR_PROOF_KINDS; k++)
		if (verdict[k] == MR_FAIL || (must_pass[path][k] && verdict[k] != MR_PASS)) {
			*ret_why = (enum mr_proof_kind)k;
			return false;
		}
	*ret_why = MR_PROOF_KINDS;
	return true;
}

void mr_proof_bar1(const struct mr_probe_value *before, const struct mr_probe_value *after,
	uint64_t bytes, struct mr_proof *ret_proof)
{
	int64_t taken = before->v - after->v;

	if (bytes == 0)
		mr_proof_set(ret_proof, MR_NA, "no NIC registered memory of this GPU");
	else if (!before->known || !after->known)
		mr_proof_set(ret_proof, MR_NA, "NVML does not tell how much of BAR1 is free");
	else
		mr_proof_set(ret_proof,
			taken >= 0 && (uint64_t)taken >= bytes ? MR_PASS : MR_UNKNOWN,
			"%" PRId64 " bytes less of BAR1 are free since NICs registered %" PRIu64,
			taken, bytes);
}

/* xorshift32 (Marsaglia, 2003); never 0 for a state that is not. */
static uint32_t draw(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

void mr_proof_frame(uint8_t *ret_frame, uint32_t bytes, const uint8_t mac[6], uint32_t seed)
{
	uint32_t state = seed * 2654435761u | 1u;

	memcpy(ret_frame, mac, 6);
	memcpy(ret_frame + 6, mac, 6);
	ret_frame[12] = ETHERTYPE_LOCAL >> 8;
	ret_frame[13] = ETHERTYPE_LOCAL & 0xff;
	for (uint32_t i = 14; i < bytes; i++)
		ret_frame[i] = (uint8_t)(draw(&state) >> 24);
}

uint32_t mr_proof_differs(const uint8_t *a, const uint8_t *b, uint32_t bytes)
{
	uint32_t i = 0;

	while (i < bytes && a[i] == b[i])
		i++;
	return i;
}

uint32_t mr_proof_sizes(uint32_t longest, uint32_t ret_sizes[MR_PROOF_SIZES_MAX])
{
	/* About lines, pages and what Ethernet usually carries. */
	static const uint32_t usual[] = {FRAME_MIN, 64, 65, 511, 1514, 4097};
	uint32_t count = 0;

	for (size_t i = 0; i < MR_ARRAY_LEN(usual); i++)
		if (usual[i] < longest)
			ret_sizes[count++] = usual[i];
	ret_sizes[count++] = longest;
	return count;
}
