/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any JSON as the answer of an instance: the renderings end without a crash and
 * give a string.
 */
#include "mr_report.h"

#include <stdlib.h>

static void rendered(char *text)
{
	if (text == NULL)
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *report = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);

	if (report == NULL)
		return 0;
	rendered(mr_report_text(report));
	rendered(mr_report_prometheus(report));
	rendered(mr_report_rates(report, report, 1.0));
	json_decref(report);
	return 0;
}
