/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_millrace - a gpudev driver on the vdev bus: each vdev is one device.
 *
 *     device=sim|PCI     the software device, or an NVIDIA GPU by its address;
 *                        the word alone is enough where it comes first
 *     guard=auto|pkey|mprotect|off   wish for the guard of packet memory
 *     klog=FILE          kernel log in which a real GPU's faults are looked for,
 *                        /dev/kmsg by default
 *     ...                the software device's options, mr_cudasim.h
 */
#include "mr_cuda.h"
#include "mr_cudasim.h"
#include "mr_dpdk_driver.h"
#include "mr_gpu_drv_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <rte_atomic.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <stdio.h>
#include <string.h>

#define OPTIONS_MAX 1024

RTE_LOG_REGISTER(mr_gpu_drv_logtype, pmd.gpu.millrace, NOTICE);

static _Thread_local struct mr_err last_error;

void mr_gpu_drv_last_error(struct mr_err *ret_err)
{
	*ret_err = last_error;
}

/* gpudev turns every error into EPERM, so the words are kept, and go to the log. */
static int report(const struct mr_err *err, int rc)
{
	if (rc != 0) {
		last_error = *err;
		rte_log(RTE_LOG_ERR, mr_gpu_drv_logtype, "gpu_millrace: %s\n", err->msg);
		rte_errno = -rc;
	}
	return rc;
}

static struct mr_gpu_drv *to_drv(const struct rte_gpu *dev)
{
	return dev->mpshared->dev_private;
}

static int op_mem_alloc(struct rte_gpu *dev, size_t size, unsigned int align, void **ptr)
{
	struct mr_err err = {0};

	return report(&err, mr_gpu_drv_mem_alloc(to_drv(dev), size, align, ptr, &err));
}

static int op_mem_free(struct rte_gpu *dev, void *ptr)
{
	struct mr_err err = {0};

	return report(&err, mr_gpu_drv_mem_free(to_drv(dev), ptr, &err));
}

static int op_mem_register(struct rte_gpu *dev, size_t size, void *ptr)
{
	struct mr_err err = {0};

	return report(&err, mr_gpu_drv_mem_register(to_drv(dev), ptr, size, &err));
}

static int op_mem_unregister(struct rte_gpu *dev, void *ptr)
{
	struct mr_err err = {0};

	return report(&err, mr_gpu_drv_mem_unregister(to_drv(dev), ptr, &err));
}

static int op_mem_cpu_map(struct rte_gpu *dev, size_t size, void *ptr_in, void **ptr_out)
{
	struct mr_err err = {0};

	return report(&err, mr_gpu_drv_mem_map(to_drv(dev), ptr_in, size, ptr_out, &err));
}

static int op_mem_cpu_unmap(struct rte_gpu *dev, void *ptr)
{
	struct mr_err err = {0};

	return report(&err, mr_gpu_drv_mem_unmap(to_drv(dev), ptr, &err));
}

/*
 * The CPU's stores first: a mapping of GPU memory is write-combining, and no
 * ordering of the device's makes a store leave the core. Then the NIC's writes,
 * where the device does not order them itself.
 */
static int op_wmb(struct rte_gpu *dev)
{
	struct mr_gpu_drv *d = to_drv(dev);
	struct mr_err err = {0};

	rte_wmb();
	if (d->info.writes_ordering != MR_CU_WRITES_ORDERING_NONE)
		return 0;
	return report(&err, mr_gpu_drv_flush(d, &err));
}

static bool is_sim(const struct mr_gpu_drv *d)
{
	return strcmp(d->info.provider, "sim") == 0;
}

static int op_dev_close(struct rte_gpu *dev)
{
	struct mr_gpu_drv *d = to_drv(dev);
	const mr_cu_device device = d->device;
	const bool sim = is_sim(d) && !d->abandoned;

	mr_gpu_drv_close(d);
	dev->mpshared->dev_private = NULL;
	if (sim)
		mr_cudasim_remove(device);
	return 0;
}

struct vdev_options {
	char device[32];
	char guard[16];
	char klog[128];
	char sim[OPTIONS_MAX]; /* what is left, for the software device */
};

static int take_word(char *to, size_t room, const char *key, const char *value, struct mr_err *err)
{
	if (strlen(value) >= room || value[0] == '\0')
		return mr_err_set(err, -EINVAL, "%s=%s is not a value of %s", key, value, key);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int options_parse(const char *args, struct vdev_options *o, struct mr_err *err)
{
	static const char *const guards[] = {"auto", "pkey", "mprotect", "off"};
	char text[OPTIONS_MAX], *rest = text, *word;
	bool known = false, first = true;
	size_t used = 0;
	int rc = 0;

	*o = (struct vdev_options){.device = "sim", .guard = "auto"};
	if (args == NULL)
		args = "";
	if (strlen(args) >= sizeof(text))
		return mr_err_set(err, -E2BIG, "the arguments are longer than %zu characters",
			sizeof(text) - 1);
	memcpy(text, args, strlen(args) + 1);
	while (rc == 0 && (word = strsep(&rest, ",")) != NULL) {
		if (word[0] == '\0')
			continue;
		if (first && strchr(word, '=') == NULL)
			rc = take_word(o->device, sizeof(o->device), "device", word, err);
		else if (strncmp(word, "device=", 7) == 0)
			rc = take_word(o->device, sizeof(o->device), "device", word + 7, err);
		else if (strncmp(word, "guard=", 6) == 0)
			rc = take_word(o->guard, sizeof(o->guard), "guard", word + 6, err);
		else if (strncmp(word, "klog=", 5) == 0)
			rc = take_word(o->klog, sizeof(o->klog), "klog", word + 5, err);
		else
			used += (size_t)snprintf(o->sim + used, sizeof(o->sim) - used, "%s%s",
				used != 0 ? "," : "", word);
		first = false;
	}
	/* A guard that was asked for closes the addresses that kernels must not share. */
	if (strcmp(o->device, "sim") == 0 &&
		(strcmp(o->guard, "pkey") == 0 || strcmp(o->guard, "mprotect") == 0))
		snprintf(o->sim + used, sizeof(o->sim) - used, "%salias=1", used != 0 ? "," : "");
	for (size_t i = 0; i < MR_ARRAY_LEN(guards); i++)
		known |= strcmp(o->guard, guards[i]) == 0;
	if (rc == 0 && !known)
		rc = mr_err_set(err, -EINVAL,
			"guard=%s is not known: use auto, pkey, mprotect or off", o->guard);
	if (rc == 0 && o->klog[0] != '\0' && strcmp(o->device, "sim") == 0)
		rc = mr_err_set(err, -EINVAL,
			"klog=%s is for a real device: the kernel knows no software device",
			o->klog);
	if (rc == 0 && o->sim[0] != '\0' && strcmp(o->device, "sim") != 0)
		rc = mr_err_set(err, -EINVAL,
			"'%s' is an option of the software device, but device=%s was asked for",
			o->sim, o->device);
	return rc;
}

/* The driver is loaded with the first real device that is asked for. */
static int cuda_api(const struct mr_cuda_api **ret_api, struct mr_err *err)
{
	static struct mr_cuda_api api;
	int rc = 0;

	if (api.provider == NULL) {
		mr_gpu_call_entered("cuInit");
		rc = mr_cuda_load(MR_CUDA_LIBRARY, MR_CUDA_GDR_LIBRARY, &api, err);
		(void)mr_gpu_call_left(MR_CUDA_SUCCESS);
	}
	*ret_api = &api;
	return rc;
}

static int find_device(const struct vdev_options *o, const struct mr_cuda_api **ret_api,
	mr_cu_device *ret_device, struct mr_err *err)
{
	mr_cu_result r;
	int rc;

	if (strcmp(o->device, "sim") == 0) {
		rc = mr_cudasim_add(o->sim, ret_device, err);
		if (rc != 0)
			return rc;
		*ret_api = mr_cudasim_api(*ret_device);
		r = (*ret_api)->cuInit(0);
		return r == MR_CUDA_SUCCESS ? 0 : mr_err_set(err, -EIO, "cuInit failed with %d", r);
	}
	if (strchr(o->device, ':') == NULL)
		return mr_err_set(err, -EINVAL,
			"device=%s is neither sim nor a PCI address such as 0000:3b:00.0",
			o->device);
	rc = cuda_api(ret_api, err);
	if (rc != 0)
		return rc;
	r = MR_GPU_CALL(*ret_api, cuDeviceGetByPCIBusId, ret_device, o->device);
	if (r != MR_CUDA_SUCCESS)
		return mr_err_set(err, -ENODEV,
			"the NVIDIA driver knows no GPU at %s (%d): see nvidia-smi -L and "
			"CUDA_VISIBLE_DEVICES",
			o->device, r);
	return 0;
}

/* -1 where the machine has one node or does not say. */
static int16_t numa_node_of(const char *pci)
{
	char path[64];
	int node = -1;
	FILE *f;

	if (pci[0] == '\0')
		return -1;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", pci);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return (int16_t)node;
}

static void fill(struct rte_gpu *gpu, struct rte_vdev_device *vdev, struct mr_gpu_drv *d)
{
	struct rte_gpu_info *info = &gpu->mpshared->info;

	gpu->device = &vdev->device;
	gpu->mpshared->dev_private = d;
	info->context = (uint64_t)(uintptr_t)d->context;
	info->processor_count = (uint32_t)d->info.multiprocessors;
	info->total_memory = d->memory_bytes;
	info->page_size = MR_GPU_DRV_PAGE;
	info->numa_node = numa_node_of(d->info.pci);
	vdev->device.numa_node = info->numa_node;
	/* Without dev_info_get gpudev answers with this info, which never changes. */
	gpu->ops = (struct rte_gpu_ops){
		.dev_close = op_dev_close,
		.mem_alloc = op_mem_alloc,
		.mem_free = op_mem_free,
		.mem_register = op_mem_register,
		.mem_unregister = op_mem_unregister,
		.mem_cpu_map = op_mem_cpu_map,
		.mem_cpu_unmap = op_mem_cpu_unmap,
		.wmb = op_wmb,
	};
}

/* What its user calls it: of gpu_millrace_g0 what is behind the driver's name. */
static const char *name_of(const struct rte_vdev_device *vdev)
{
	static const char prefix[] = "gpu_millrace_";
	const char *name = vdev->device.name;

	return strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? name + sizeof(prefix) - 1 : name;
}

static int open_device(struct rte_vdev_device *vdev, struct rte_gpu *gpu, struct mr_err *err)
{
	const char *name = name_of(vdev);
	const char *args = vdev->device.devargs != NULL ? vdev->device.devargs->args : "";
	const struct mr_cuda_api *api = NULL;
	mr_cu_device device = -1;
	struct vdev_options o;
	struct mr_gpu_drv *d;
	struct mr_err why = {0};
	int rc = options_parse(args, &o, &why);

	if (rc == 0)
		rc = find_device(&o, &api, &device, &why);
	if (rc != 0)
		return mr_err_set(err, rc, "device '%s': %s", name, why.msg);
	rc = mr_gpu_drv_open(api, device, name, o.guard, gpu->mpshared->info.dev_id, &d, err);
	if (rc == 0) {
		snprintf(d->info.klog, sizeof(d->info.klog), "%s",
			o.klog[0] == '\0' && !is_sim(d) ? "/dev/kmsg" : o.klog);
		fill(gpu, vdev, d);
	} else if (strcmp(api->provider, "sim") == 0)
		mr_cudasim_remove(device);
	return rc;
}

static int probe(struct rte_vdev_device *vdev)
{
	struct mr_err err = {0};
	struct rte_gpu *gpu;
	int rc;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		rc = mr_err_set(&err, -ENOTSUP,
			"device '%s': a secondary process cannot share the primary's CUDA context",
			name_of(vdev));
		return report(&err, rc);
	}
	gpu = rte_gpu_allocate(vdev->device.name);
	if (gpu == NULL) {
		rc = mr_err_set(&err, -rte_errno, "device '%s': gpudev has no place for it: %s",
			name_of(vdev), rte_strerror(rte_errno));
		return report(&err, rc);
	}
	rc = open_device(vdev, gpu, &err);
	if (rc != 0) {
		rte_gpu_release(gpu);
		return report(&err, rc);
	}
	rte_gpu_complete_new(gpu);
	return 0;
}

/* The application may have closed the device already. */
static int remove_device(struct rte_vdev_device *vdev)
{
	struct rte_gpu *gpu = rte_gpu_get_by_name(vdev->device.name);

	if (gpu == NULL)
		return 0;
	return rte_gpu_close(gpu->mpshared->info.dev_id);
}

static struct rte_vdev_driver gpu_millrace = {
	.driver = {.name = "gpu_millrace"},
	.probe = probe,
	.remove = remove_device,
};

RTE_INIT(gpu_millrace_register)
{
	rte_vdev_register(&gpu_millrace);
}
