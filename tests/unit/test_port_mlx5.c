/* SPDX-License-Identifier: BSD-3-Clause */
/* The mbuf flag by which an mlx5 port is told not to copy: there before it starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_port.h"

#include <rte_eal.h>
#include <rte_mbuf_dyn.h>
#include <stdio.h>

static void flag_is_there_for_mlx5_alone(void **state)
{
	struct mr_port other = {.name = "p0", .driver = "net_virtio"};
	struct mr_port mlx5 = {.name = "p1", .driver = "mlx5_pci"};
	struct mr_err err;
	int bit;

	(void)state;
	assert_int_equal(mr_port_mlx5_prepare(&other, &err), 0);
	assert_true(rte_mbuf_dynflag_lookup("mlx5_fine_granularity_inline", NULL) < 0);
	assert_int_equal(mr_port_mlx5_prepare(&mlx5, &err), 0);
	bit = rte_mbuf_dynflag_lookup("mlx5_fine_granularity_inline", NULL);
	assert_true(bit >= 0);
	/* The second port of the kind. */
	assert_int_equal(mr_port_mlx5_prepare(&mlx5, &err), 0);
	assert_int_equal(rte_mbuf_dynflag_lookup("mlx5_fine_granularity_inline", NULL), bit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flag_is_there_for_mlx5_alone),
	};
	char *argv[] = {"test_port_mlx5", "--no-huge", "-m", "32", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level", "*:error"};

	if (rte_eal_init((int)MR_ARRAY_LEN(argv), argv) < 0) {
		fprintf(stderr, "EAL does not start here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
