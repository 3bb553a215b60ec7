/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_dpdk_driver - the driver side of DPDK's vdev bus and gpudev.
 *
 * A driver needs gpudev_driver.h and bus_vdev_driver.h. Distributions do not
 * install them (meson option enable_driver_sdk of DPDK), but the functions are
 * exported under the version INTERNAL. Where the headers are there they are
 * used; otherwise the few structures below are, for DPDK 22.11 and no other,
 * since nothing holds an internal layout still between releases.
 *
 * Source   DPDK v22.11: lib/eal/include/dev_driver.h,
 *          drivers/bus/vdev/bus_vdev_driver.h, lib/gpudev/gpudev_driver.h;
 *          the same in v22.11.11 but for extern "C"
 */
#ifndef MR_DPDK_DRIVER_H
#define MR_DPDK_DRIVER_H

#include <rte_version.h>

#if __has_include(<gpudev_driver.h>) && __has_include(<bus_vdev_driver.h>)

#ifndef ALLOW_INTERNAL_API
#define ALLOW_INTERNAL_API
#endif
#include <bus_vdev_driver.h>
#include <gpudev_driver.h>

#else

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0) || RTE_VERSION >= RTE_VERSION_NUM(22, 12, 0, 0)
#error "drivers/gpu knows the driver structures of DPDK 22.11 only: for another release, build \
DPDK with -Denable_driver_sdk=true so that gpudev_driver.h and bus_vdev_driver.h are installed"
#endif

#include <rte_bus_vdev.h>
#include <rte_common.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_gpudev.h>

#include <sys/queue.h>

struct rte_driver {
	RTE_TAILQ_ENTRY(rte_driver) next;
	const char *name;
	const char *alias;
};

struct rte_device {
	RTE_TAILQ_ENTRY(rte_device) next;
	const char *name;
	const char *bus_info;
	const struct rte_driver *driver;
	const struct rte_bus *bus;
	int numa_node;
	struct rte_devargs *devargs;
};

struct rte_vdev_device {
	RTE_TAILQ_ENTRY(rte_vdev_device) next;
	struct rte_device device;
};

struct rte_vdev_driver {
	RTE_TAILQ_ENTRY(rte_vdev_driver) next;
	struct rte_driver driver;
	int (*probe)(struct rte_vdev_device *dev);
	int (*remove)(struct rte_vdev_device *dev);
	int (*dma_map)(struct rte_vdev_device *dev, void *addr, uint64_t iova, size_t len);
	int (*dma_unmap)(struct rte_vdev_device *dev, void *addr, uint64_t iova, size_t len);
	uint32_t drv_flags;
};

void rte_vdev_register(struct rte_vdev_driver *driver);
void rte_vdev_unregister(struct rte_vdev_driver *driver);

enum rte_gpu_state {
	RTE_GPU_STATE_UNUSED,
	RTE_GPU_STATE_INITIALIZED,
};

struct rte_gpu;

struct rte_gpu_ops {
	int (*dev_info_get)(struct rte_gpu *dev, struct rte_gpu_info *info);
	int (*dev_close)(struct rte_gpu *dev);
	int (*mem_alloc)(struct rte_gpu *dev, size_t size, unsigned int align, void **ptr);
	int (*mem_free)(struct rte_gpu *dev, void *ptr);
	int (*mem_register)(struct rte_gpu *dev, size_t size, void *ptr);
	int (*mem_unregister)(struct rte_gpu *dev, void *ptr);
	int (*mem_cpu_map)(struct rte_gpu *dev, size_t size, void *ptr_in, void **ptr_out);
	int (*mem_cpu_unmap)(struct rte_gpu *dev, void *ptr);
	int (*wmb)(struct rte_gpu *dev);
};

struct rte_gpu_mpshared {
	char name[RTE_DEV_NAME_MAX_LEN];
	void *dev_private;
	struct rte_gpu_info info;
	uint16_t process_refcnt;
};

struct rte_gpu {
	struct rte_device *device;
	struct rte_gpu_mpshared *mpshared;
	struct rte_gpu_ops ops;
	TAILQ_HEAD(rte_gpu_callback_list, rte_gpu_callback) callbacks;
	enum rte_gpu_state process_state;
	void *process_private;
} __rte_cache_aligned;

struct rte_gpu *rte_gpu_get_by_name(const char *name);
struct rte_gpu *rte_gpu_allocate(const char *name);
struct rte_gpu *rte_gpu_attach(const char *name);
void rte_gpu_complete_new(struct rte_gpu *dev);
int rte_gpu_release(struct rte_gpu *dev);
void rte_gpu_notify(struct rte_gpu *dev, enum rte_gpu_event event);

#endif

#endif
