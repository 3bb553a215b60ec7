/* SPDX-License-Identifier: BSD-3-Clause */
/* mr_probe_nic - the child that asks libibverbs, ethtool's ioctl and the devlink command. */
#define _GNU_SOURCE 1
#include "mr_probe_priv.h"

#include "mr_cuda_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define VERBS_LIBRARY "libibverbs.so.1"
#define CUDA_LIBRARY "libcuda.so.1"
#define ACCESS_LOCAL_WRITE 1 /* IBV_ACCESS_LOCAL_WRITE */
#define BUFFER_BYTES (2u << 20)
#define DEVLINK_BYTES (256u << 10) /* a few reporters for each of many functions */
#define SYMBOL(handle, fn, name) (*(void **)&(fn) = dlsym(handle, name), (fn) != NULL)

/* The functions of libibverbs that are asked for; everything behind a pointer is its own. */
struct verbs {
	void **(*get_device_list)(int *count);
	const char *(*get_device_name)(void *device);
	void *(*open_device)(void *device);
	void *(*alloc_pd)(void *context);
	void *(*reg_mr)(void *pd, void *addr, size_t bytes, int access);
	void *(*reg_dmabuf_mr)(
		void *pd, uint64_t offset, size_t bytes, uint64_t iova, int fd, int access);
	int (*dereg_mr)(void *mr);
};

bool mr_probe_nic_first(
	struct mr_root *root, const char *bdf, const char *folder, char ret_name[64])
{
	struct mr_root_names names;
	char path[256];
	bool found;

	snprintf(path, sizeof(path), "sys/bus/pci/devices/%.32s/%s", bdf, folder);
	if (mr_root_list(root, path, &names) != 0)
		return false;
	found = names.count > 0;
	if (found)
		snprintf(ret_name, 64, "%.63s", names.name[0]);
	mr_root_names_free(&names);
	return found;
}

/* A protection domain of the NIC; NULL where the library or the device says no. */
static void *open_pd(struct mr_root *root, struct verbs *v, const char *bdf)
{
	void *lib = dlopen(VERBS_LIBRARY, RTLD_NOW);
	void *context = NULL;
	char name[64];
	void **list;

	if (lib == NULL || !SYMBOL(lib, v->get_device_list, "ibv_get_device_list") ||
		!SYMBOL(lib, v->get_device_name, "ibv_get_device_name") ||
		!SYMBOL(lib, v->open_device, "ibv_open_device") ||
		!SYMBOL(lib, v->alloc_pd, "ibv_alloc_pd") ||
		!SYMBOL(lib, v->reg_mr, "ibv_reg_mr") ||
		!SYMBOL(lib, v->dereg_mr, "ibv_dereg_mr") ||
		!mr_probe_nic_first(root, bdf, "infiniband", name))
		return NULL;
	if (!SYMBOL(lib, v->reg_dmabuf_mr, "ibv_reg_dmabuf_mr"))
		v->reg_dmabuf_mr = NULL; /* an older library */
	list = v->get_device_list(NULL);
	for (uint32_t i = 0; list != NULL && list[i] != NULL && context == NULL; i++)
		if (strcmp(v->get_device_name(list[i]), name) == 0)
			context = v->open_device(list[i]);
	return context == NULL ? NULL : v->alloc_pd(context);
}

static void ask_pause(struct mr_root *root, const char *bdf, int fd)
{
	struct ethtool_pauseparam pause = {.cmd = ETHTOOL_GPAUSEPARAM};
	struct ifreq request = {0};
	char name[64];
	int sock;

	if (!mr_probe_nic_first(root, bdf, "net", name) || strlen(name) >= sizeof(request.ifr_name))
		return;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return;
	memcpy(request.ifr_name, name, strlen(name) + 1);
	request.ifr_data = (void *)&pause;
	if (ioctl(sock, SIOCETHTOOL, &request) == 0) {
		mr_probe_say(fd, "pause_rx", pause.rx_pause);
		mr_probe_say(fd, "pause_tx", pause.tx_pause);
	}
	close(sock);
}

/* What a command prints, ended with NUL; false where it cannot be had. */
static bool output_of(char *const argv[], char *text, size_t bytes)
{
	size_t have = 0;
	ssize_t got;
	int pipes[2];
	int status = -1;
	pid_t child;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return false;
	child = fork();
	if (child == 0) {
		dup2(pipes[1], 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(pipes[1]);
	while (child > 0 && have < bytes - 1 &&
		(got = read(pipes[0], text + have, bytes - 1 - have)) > 0)
		have += (size_t)got;
	close(pipes[0]);
	text[have] = '\0';
	if (child > 0)
		waitpid(child, &status, 0);
	return status == 0;
}

/* "state healthy error 0 recover 0" for each reporter, in plain words. */
static void count_reporters(const char *line, uint32_t *reporters, uint32_t *bad, uint64_t *errors)
{
	const char *s = strstr(line, "state ");
	const char *count = s == NULL ? NULL : strstr(s + 6, " error ");

	if (s == NULL)
		return;
	(*reporters)++;
	*bad += strncmp(s + 6, "healthy", 7) != 0;
	if (count != NULL)
		*errors += strtoull(count + 7, NULL, 10);
}

/*
 * Asked for one device alone, devlink wants a reporter's name; without arguments it tells of all.
 * A section begins with its device, pci/BDF: or pci/BDF/PORT:, and goes on with lines set in.
 */
static void ask_devlink(const char *bdf, int fd)
{
	static char text[DEVLINK_BYTES];
	char *argv[] = {"devlink", "health", "show", NULL};
	uint32_t reporters = 0, bad = 0;
	uint64_t errors = 0;
	char device[64];
	bool mine = false;
	int n = snprintf(device, sizeof(device), "pci/%.32s", bdf);

	if (!output_of(argv, text, sizeof(text)))
		return;
	for (char *rest = text, *line = strtok_r(rest, "\n", &rest); line != NULL;
		line = strtok_r(NULL, "\n", &rest)) {
		if (line[0] != ' ' && line[0] != '\t')
			mine = strncmp(line, device, (size_t)n) == 0 && line[n] != '\0' &&
				strchr(":/", line[n]) != NULL;
		if (mine)
			count_reporters(line, &reporters, &bad, &errors);
	}
	if (reporters == 0)
		return;
	mr_probe_say(fd, "health_bad", bad);
	mr_probe_say(fd, "health_errors", (long long)(errors & INT64_MAX));
}

void mr_probe_child_nic(struct mr_root *root, const char *bdf, int fd)
{
	struct verbs v;
	void *pd;

	ask_pause(root, bdf, fd);
	ask_devlink(bdf, fd);
	pd = open_pd(root, &v, bdf);
	if (pd == NULL || v.reg_dmabuf_mr == NULL)
		return;
	/* There is no such descriptor: EBADF means that the call as such is there. */
	errno = 0;
	if (v.reg_dmabuf_mr(pd, 0, 0, 0, -1, 0) == NULL)
		mr_probe_say(fd, "dmabuf_errno", errno);
}

struct cuda {
	mr_cu_result (*init)(unsigned int);
	mr_cu_result (*by_bus)(mr_cu_device *, const char *);
	mr_cu_result (*retain)(mr_cu_context *, mr_cu_device);
	mr_cu_result (*push)(mr_cu_context);
	mr_cu_result (*alloc)(mr_cu_deviceptr *, size_t);
};

static bool gpu_buffer(const char *bdf, mr_cu_deviceptr *ret_ptr)
{
	void *lib = dlopen(CUDA_LIBRARY, RTLD_NOW);
	mr_cu_context context;
	mr_cu_device device;
	struct cuda c;

	if (lib == NULL || !SYMBOL(lib, c.init, "cuInit") ||
		!SYMBOL(lib, c.by_bus, "cuDeviceGetByPCIBusId") ||
		!SYMBOL(lib, c.retain, "cuDevicePrimaryCtxRetain") ||
		!SYMBOL(lib, c.push, "cuCtxPushCurrent_v2") ||
		!SYMBOL(lib, c.alloc, "cuMemAlloc_v2"))
		return false;
	return c.init(0) == 0 && c.by_bus(&device, bdf) == 0 && c.retain(&context, device) == 0 &&
		c.push(context) == 0 && c.alloc(ret_ptr, BUFFER_BYTES) == 0;
}

void mr_probe_child_pair(struct mr_root *root, const char *bdfs, int fd)
{
	const char *plus = strchr(bdfs, '+');
	mr_cu_deviceptr buffer;
	char gpu[32];
	struct verbs v;
	void *pd, *mr;

	if (plus == NULL || plus - bdfs >= (long)sizeof(gpu))
		return;
	memcpy(gpu, bdfs, (size_t)(plus - bdfs));
	gpu[plus - bdfs] = '\0';
	pd = open_pd(root, &v, plus + 1);
	if (pd == NULL || !gpu_buffer(gpu, &buffer))
		return;
	errno = 0;
	mr = v.reg_mr(pd, (void *)(uintptr_t)buffer, BUFFER_BYTES, ACCESS_LOCAL_WRITE);
	mr_probe_say(fd, "register_errno", mr == NULL ? errno : 0);
	if (mr != NULL)
		v.dereg_mr(mr);
}
