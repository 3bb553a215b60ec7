/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port is told, and what is known of its driver, without the device. */
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

static void drivers_that_touch_packet_bytes_are_named(void **state)
{
	struct mr_port mlx5 = {.driver = "mlx5_pci"}, intel = {.driver = "net_e1000_em"};
	struct mr_port vmxnet3 = {.driver = "net_vmxnet3"}, virtio = {.driver = "net_virtio"};

	(void)state;
	for (int sends = 0; sends < 2; sends++) {
		assert_null(mr_port_touches(&mlx5, sends));
		assert_null(mr_port_touches(&intel, sends));
		assert_non_null(mr_port_touches(&virtio, sends));
	}
	assert_null(mr_port_touches(&vmxnet3, false));
	assert_non_null(mr_port_touches(&vmxnet3, true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flag_is_there_for_mlx5_alone),
		cmocka_unit_test(drivers_that_touch_packet_bytes_are_named),
	};
	char *argv[] = {"test_port", "--no-huge", "-m", "32", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level", "*:error"};

	if (rte_eal_init((int)MR_ARRAY_LEN(argv), argv) < 0) {
		fprintf(stderr, "EAL does not start here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
