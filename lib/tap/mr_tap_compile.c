/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_tap_compile.h"

#include "mr_tap_check.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <string.h>

static int take(const char *expression, const struct bpf_program *p,
	struct mr_tap_insn ret_insns[MR_TAP_INSNS_MAX], uint32_t *ret_count, struct mr_err *err)
{
	struct mr_err why = {0};

	if (p->bf_len > MR_TAP_INSNS_MAX)
		return mr_err_set(err, -EINVAL,
			"the filter '%.200s' takes %u instructions, a tap has room for %u; use a "
			"shorter one",
			expression, p->bf_len, MR_TAP_INSNS_MAX);
	for (uint32_t i = 0; i < p->bf_len; i++)
		ret_insns[i] = (struct mr_tap_insn){p->bf_insns[i].code, p->bf_insns[i].jt,
			p->bf_insns[i].jf, p->bf_insns[i].k};
	/* linux/filter.h, SKF_AD_OFF and what lies above it: no byte of a frame. */
	for (uint32_t i = 0; i < p->bf_len; i++)
		if (BPF_CLASS(ret_insns[i].code) == BPF_LD &&
			BPF_MODE(ret_insns[i].code) == BPF_ABS && (int32_t)ret_insns[i].k < 0)
			return mr_err_set(err, -EINVAL,
				"the filter '%.200s' asks for what an interface knows and a frame "
				"does not hold; leave that out",
				expression);
	*ret_count = p->bf_len;
	if (mr_tap_check(ret_insns, p->bf_len, &why) < 0)
		return mr_err_set(err, -EINVAL,
			"the filter '%.200s' cannot be run in the kernel: %s; put it another way",
			expression, why.msg);
	return 0;
}

int mr_tap_compile(const char *expression, struct mr_tap_insn ret_insns[MR_TAP_INSNS_MAX],
	uint32_t *ret_count, struct mr_err *err)
{
	pcap_t *p = pcap_open_dead(DLT_EN10MB, (int)MR_TAP_SNAP_MAX);
	struct bpf_program program;
	int rc;

	if (p == NULL)
		return mr_err_set(err, -ENOMEM, "out of memory for the filter");
	if (pcap_compile(p, &program, expression, 1, PCAP_NETMASK_UNKNOWN) != 0) {
		rc = mr_err_set(err, -EINVAL,
			"the filter '%.200s' is not understood: %s; see pcap-filter(7)", expression,
			pcap_geterr(p));
	} else {
		rc = take(expression, &program, ret_insns, ret_count, err);
		pcap_freecode(&program);
	}
	pcap_close(p);
	return rc;
}
