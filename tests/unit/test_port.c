/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port is told, and what is known of its driver, without the device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mr_port.h"

#include <errno.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf_dyn.h>
#include <stdio.h>
#include <string.h>

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

/* What the bus answers: a code, and the two words that may say more. */
static int dma_answer[3];

int __wrap_rte_dev_dma_map(struct rte_device *dev, void *addr, uint64_t iova, size_t len);
int __wrap_rte_dev_dma_map(struct rte_device *dev, void *addr, uint64_t iova, size_t len)
{
	(void)dev;
	(void)addr;
	(void)iova;
	(void)len;
	if (dma_answer[1] != 0)
		rte_errno = dma_answer[1];
	if (dma_answer[2] != 0)
		errno = dma_answer[2];
	return dma_answer[0];
}

int __wrap_rte_dev_dma_unmap(struct rte_device *dev, void *addr, uint64_t iova, size_t len);
int __wrap_rte_dev_dma_unmap(struct rte_device *dev, void *addr, uint64_t iova, size_t len)
{
	return __wrap_rte_dev_dma_map(dev, addr, iova, len);
}

/* DPDK lib/eal/linux/eal_vfio.c: most of its ways to fail set neither word; the PCI bus sets one.
 */
static void memory_that_a_bus_did_not_map_is_never_taken_for_mapped(void **state)
{
	static const struct {
		int answer[3];
		bool software;
		int rc;
	} rows[] = {
		{{0, 0, 0}, false, 0},
		{{-1, 0, 0}, false, -EIO},
		{{-1, 0, ENOMEM}, false, -ENOMEM},
		{{-1, EINVAL, ENOMEM}, false, -EINVAL},
		{{-1, ENOTSUP, 0}, false, -ENOTSUP},
		{{-1, ENOTSUP, 0}, true, 0},
		{{-1, 0, 0}, true, -EIO},
	};

	(void)state;
	for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
		struct mr_port p = {.name = "p0", .device = "d0", .software = rows[i].software};
		struct mr_err err = {0};
		const char *kind;

		memcpy(dma_answer, rows[i].answer, sizeof(dma_answer));
		/* Of some call before. */
		rte_errno = rows[i].software ? ENOTSUP : 0;
		errno = 0;
		assert_int_equal(mr_port_map(&p, &p, 1, &kind, &err), rows[i].rc);
		rte_errno = rows[i].software ? ENOTSUP : 0;
		errno = 0;
		assert_int_equal(mr_port_unmap(&p, &p, 1, &err), rows[i].rc);
		assert_int_equal(err.code, rows[i].rc);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flag_is_there_for_mlx5_alone),
		cmocka_unit_test(drivers_that_touch_packet_bytes_are_named),
		cmocka_unit_test(memory_that_a_bus_did_not_map_is_never_taken_for_mapped),
	};
	char *argv[] = {"test_port", "--no-huge", "-m", "32", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level", "*:error"};

	if (rte_eal_init((int)MR_ARRAY_LEN(argv), argv) < 0) {
		fprintf(stderr, "EAL does not start here\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
