/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_cmd_manual - what the file of the command `manual` leaves to another: the completion. */
#ifndef MR_CMD_MANUAL_H
#define MR_CMD_MANUAL_H

#include <stdint.h>

/* Prints the completion of bash; pages are the names that `manual` takes. */
void mr_manual_completion(const char *const *pages, uint32_t count);

#endif
