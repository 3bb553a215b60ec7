/* SPDX-License-Identifier: BSD-3-Clause */
/* simt_faults - small kernels, each with one fault that the interpreter has to find. */
#ifndef SIMT_FAULTS_H
#define SIMT_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#define SIMT_WORDS 70u   /* word 0 is handed over, the rest are the lanes' */
#define SIMT_REFUSED 69u /* this one is not given to lanes */

struct simt_words {
	uint32_t *words;
};

/* Run as one block of 64 lanes over SIMT_WORDS words. */
struct simt_fault_row {
	const char *name;
	void (*entry)(const void *argument);
	const char *found; /* part of the sentence; NULL: nothing is wrong with it */
	bool host;         /* the host waits for word 0 and then reads the rest, all must be 1 */
};

extern const struct simt_fault_row simt_fault_rows[];
extern const uint32_t simt_fault_rows_count;

#endif
