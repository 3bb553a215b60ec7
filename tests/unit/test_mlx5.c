/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of an mlx5 port: each rule by name, and the keys against the installed driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_mlx5.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OURS "txq_inline_max=0,mprq_en=0,mr_ext_memseg_en=0,mr_mempool_reg_en=0,rxq_pkt_pad_en=1"
#define INLINE "the CPU would copy frames into send descriptors"
#define MPRQ                                                                                       \
	"a receive queue of strides takes no packet memory but its own, and the CPU copies short " \
	"frames out of it"
#define LRO "for LRO the CPU writes the header of each merged frame"

struct told {
	uint32_t count;
	char sentence[512], remedy[128];
};

static void tell(void *ctx, const char *sentence, const char *remedy)
{
	struct told *t = ctx;

	t->count++;
	snprintf(t->sentence, sizeof(t->sentence), "%s", sentence);
	snprintf(t->remedy, sizeof(t->remedy), "%s", remedy);
}

static const struct {
	const char *user, *args;
} accepted[] = {
	{"", OURS},
	{"dv_flow_en=2", "dv_flow_en=2," OURS},
	{"representor=[0,2-3],tx_pp=500", "representor=[0,2-3],tx_pp=500," OURS},
	/* What is written as Millrace would is not written twice. */
	{"txq_inline_max=0",
		"txq_inline_max=0,mprq_en=0,mr_ext_memseg_en=0,mr_mempool_reg_en=0,"
		"rxq_pkt_pad_en=1"},
	{"mprq_en=0x0,rxq_pkt_pad_en=01",
		"mprq_en=0x0,rxq_pkt_pad_en=01,txq_inline_max=0,mr_ext_memseg_en=0,"
		"mr_mempool_reg_en=0"},
	{OURS, OURS},
	{"txq_inline_min=0,txq_inline_mpw=0", "txq_inline_min=0,txq_inline_mpw=0," OURS},
	{"class=eth,rxq_cqe_comp_en=4,txqs_min_inline=8",
		"class=eth,rxq_cqe_comp_en=4,txqs_min_inline=8," OURS},
};

static const struct {
	const char *user, *sentence, *remedy;
} refused[] = {
	{"txq_inline_max=290",
		"txq_inline_max=290: the CPU would copy frames into send descriptors, and reads "
		"GPU memory with a fault",
		"remove txq_inline_max, or write txq_inline_max=0"},
	{"txq_inline_min=18",
		"txq_inline_min=18: the CPU would copy the head of every frame, whatever "
		"txq_inline_max says",
		"remove txq_inline_min, or write txq_inline_min=0"},
	{"txq_inline_mpw=268",
		"txq_inline_mpw=268: the CPU would copy short frames into send descriptors",
		"remove txq_inline_mpw, or write txq_inline_mpw=0"},
	{"txq_inline=1", "txq_inline=1: " INLINE, "remove txq_inline, or write txq_inline=0"},
	{"txq_max_inline_len=64", "txq_max_inline_len=64: " INLINE,
		"remove txq_max_inline_len, or write txq_max_inline_len=0"},
	{"tso=1", "tso=1: for TSO the CPU copies each frame's headers", "remove tso"},
	{"mprq_en=1", "mprq_en=1: " MPRQ, "remove mprq_en, or write mprq_en=0"},
	{"mprq_log_stride_num=6",
		"mprq_log_stride_num=6: it sizes the strides of mprq_en, which is off",
		"remove mprq_log_stride_num"},
	{"mprq_log_stride_size=11",
		"mprq_log_stride_size=11: it sizes the strides of mprq_en, which is off",
		"remove mprq_log_stride_size"},
	{"mprq_max_memcpy_len=128",
		"mprq_max_memcpy_len=128: it says what the CPU copies under mprq_en, which is off",
		"remove mprq_max_memcpy_len"},
	{"rxqs_min_mprq=12", "rxqs_min_mprq=12: it belongs to mprq_en, which is off",
		"remove rxqs_min_mprq"},
	{"lro_timeout_usec=32", "lro_timeout_usec=32: " LRO, "remove lro_timeout_usec"},
	{"lro_min_mss_size=0", "lro_min_mss_size=0: " LRO, "remove lro_min_mss_size"},
	{"mr_ext_memseg_en=1",
		"mr_ext_memseg_en=1: the driver would widen a registration to whatever lies beside "
		"packet memory",
		"remove mr_ext_memseg_en, or write mr_ext_memseg_en=0"},
	{"mr_mempool_reg_en=1",
		"mr_mempool_reg_en=1: the driver would register each pool once more, page by page "
		"as buffers begin",
		"remove mr_mempool_reg_en, or write mr_mempool_reg_en=0"},
	{"rxq_pkt_pad_en=0",
		"rxq_pkt_pad_en=0: frames of odd length would end in a partial line, which is slow "
		"to write over PCIe",
		"remove rxq_pkt_pad_en, or write rxq_pkt_pad_en=1"},
	{"class=vdpa", "class=vdpa: the port would be no network port",
		"remove class, or write class=eth"},
	{"txq_inline_max",
		"txq_inline_max=: the CPU would copy frames into send descriptors, and "
		"reads GPU memory with a fault",
		"remove txq_inline_max, or write txq_inline_max=0"},
	{"dv_flow_enn=2", "the mlx5 driver of DPDK 22.11 has no option 'dv_flow_enn'",
		"did you mean 'dv_flow_en'?"},
	{"frobnicate=1", "the mlx5 driver of DPDK 22.11 has no option 'frobnicate'", "remove it"},
};

static void harmless_options_stay_and_ours_follow(void **state)
{
	char args[512];
	struct told t;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(accepted); i++) {
		t.count = 0;
		assert_int_equal(
			mr_mlx5_devargs(accepted[i].user, tell, &t, args, sizeof(args)), 0);
		assert_int_equal(t.count, 0);
		assert_string_equal(args, accepted[i].args);
	}
}

static void what_contradicts_is_refused_with_its_cause(void **state)
{
	char args[512];
	struct told t;

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(refused); i++) {
		t.count = 0;
		assert_int_equal(
			mr_mlx5_devargs(refused[i].user, tell, &t, args, sizeof(args)), -EINVAL);
		assert_int_equal(t.count, 1);
		assert_string_equal(t.sentence, refused[i].sentence);
		assert_string_equal(t.remedy, refused[i].remedy);
	}
}

static void all_are_told_in_one_run(void **state)
{
	struct told t = {0};
	char args[512];

	(void)state;
	assert_int_equal(mr_mlx5_devargs("mprq_en=1,dv_flow_en=1,txq_inline_min=1,mprq_en=0", tell,
				 &t, args, sizeof(args)),
		-EINVAL);
	assert_int_equal(t.count, 2);
}

static void options_never_end_in_the_middle(void **state)
{
	struct told t = {0};
	char args[128];

	(void)state;
	assert_int_equal(mr_mlx5_devargs("", tell, &t, args, strlen(OURS) + 1), 0);
	assert_int_equal(t.count, 0);
	assert_int_equal(mr_mlx5_devargs("", tell, &t, args, strlen(OURS)), -E2BIG);
	assert_int_equal(t.count, 1);
	assert_int_equal(mr_mlx5_devargs("tx_pp=500", tell, &t, args, 4), -E2BIG);
}

/* Bytes of the driver that DPDK loads; NULL where it is not installed. */
static char *driver_bytes(const char *pattern, size_t *ret_bytes)
{
	char *bytes = NULL;
	glob_t g;
	FILE *f;

	if (glob(pattern, 0, NULL, &g) != 0)
		return NULL;
	f = fopen(g.gl_pathv[0], "rb");
	globfree(&g);
	if (f == NULL)
		return NULL;
	fseek(f, 0, SEEK_END);
	*ret_bytes = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(*ret_bytes);
	if (bytes == NULL || fread(bytes, 1, *ret_bytes, f) != *ret_bytes) {
		free(bytes);
		bytes = NULL;
	}
	fclose(f);
	return bytes;
}

static void keys_that_are_written_are_the_drivers(void **state)
{
	static const char *const patterns[] = {
		"/usr/lib/*/librte_net_mlx5.so.23*", "/usr/lib/*/librte_common_mlx5.so.23*"};
	const char *key;
	bool set;

	(void)state;
	for (uint32_t i = 0; (key = mr_mlx5_key(i, &set)) != NULL; i++) {
		bool found = false;

		for (size_t k = 0; k < MR_ARRAY_LEN(patterns); k++) {
			size_t bytes = 0, n = strlen(key) + 1;
			char *lib = driver_bytes(patterns[k], &bytes);

			if (lib == NULL)
				skip();
			found |= memmem(lib, bytes, key, n) != NULL;
			free(lib);
		}
		/* Those of other versions are only known to be refused. */
		if (!found && (set || (strcmp(key, "tso") != 0 && strncmp(key, "lro_min", 7) != 0)))
			fail_msg("the driver has no option '%s'", key);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(harmless_options_stay_and_ours_follow),
		cmocka_unit_test(what_contradicts_is_refused_with_its_cause),
		cmocka_unit_test(all_are_told_in_one_run),
		cmocka_unit_test(options_never_end_in_the_middle),
		cmocka_unit_test(keys_that_are_written_are_the_drivers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
