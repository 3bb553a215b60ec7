/* SPDX-License-Identifier: BSD-3-Clause */
/* A topology that hwloc has exported, written down as sysfs would show the machine. */
#define _GNU_SOURCE 1
#include "mr_root_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <hwloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU "sys/devices/system/cpu/"
#define NODE "sys/devices/system/node/"
#define PARSE_S 10u
#define XML_BYTES_MAX (16 << 20) /* the largest machines have some 2 MiB */

/* Errors stay: once one came, nothing more is written. */
struct writer {
	hwloc_topology_t topology;
	int fd; /* of the folder */
	int rc;
};

static void make_above(struct writer *w, char *path)
{
	for (char *s = strchr(path, '/'); s != NULL && w->rc == 0; s = strchr(s + 1, '/')) {
		*s = '\0';
		if (mkdirat(w->fd, path, 0700) != 0 && errno != EEXIST)
			w->rc = -errno;
		*s = '/';
	}
}

static void put(struct writer *w, const char *path, const char *text)
{
	char above[MR_ROOT_PATH_MAX];
	ssize_t bytes = (ssize_t)strlen(text), done;
	int fd;

	if (snprintf(above, sizeof(above), "%s", path) >= (int)sizeof(above))
		w->rc = -ENAMETOOLONG;
	make_above(w, above);
	if (w->rc != 0)
		return;
	fd = openat(w->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		w->rc = -errno;
		return;
	}
	done = write(fd, text, (size_t)bytes);
	if (done != bytes)
		w->rc = done < 0 ? -errno : -ENOSPC;
	close(fd);
}

static MR_PRINTF(3, 4) void put_at(struct writer *w, const char *path, const char *fmt, ...)
{
	char text[64];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	put(w, path, text);
}

/* A set without an end would be none of a machine. */
static void put_list(struct writer *w, const char *path, hwloc_const_bitmap_t set)
{
	char *text = NULL;

	if (set == NULL || hwloc_bitmap_weight(set) <= 0)
		return;
	if (hwloc_bitmap_list_asprintf(&text, set) < 0)
		w->rc = -ENOMEM;
	else
		put(w, path, text);
	free(text);
}

static void put_cpus(struct writer *w)
{
	hwloc_obj_t o = NULL;
	char path[128];

	put_list(w, CPU "possible", hwloc_topology_get_complete_cpuset(w->topology));
	put_list(w, CPU "online", hwloc_topology_get_topology_cpuset(w->topology));
	while ((o = hwloc_get_next_obj_by_type(w->topology, HWLOC_OBJ_PU, o)) != NULL) {
		hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(w->topology, HWLOC_OBJ_CORE, o);

		snprintf(
			path, sizeof(path), CPU "cpu%u/topology/thread_siblings_list", o->os_index);
		put_list(w, path, core != NULL ? core->cpuset : o->cpuset);
	}
	while ((o = hwloc_get_next_obj_by_type(w->topology, HWLOC_OBJ_NUMANODE, o)) != NULL) {
		snprintf(path, sizeof(path), NODE "node%u/cpulist", o->os_index);
		put_list(w, path, o->cpuset);
	}
}

static int node_of(struct writer *w, hwloc_obj_t o)
{
	hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(w->topology, o);

	return near != NULL && near->nodeset != NULL && hwloc_bitmap_weight(near->nodeset) == 1
		? hwloc_bitmap_first(near->nodeset)
		: -1;
}

static bool is_bridge(hwloc_obj_t o, hwloc_obj_bridge_type_t upstream)
{
	return o->type == HWLOC_OBJ_BRIDGE && o->attr->bridge.upstream_type == upstream &&
		o->attr->bridge.downstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

/* "/sys/devices/pciDDDD:BB/BRIDGE/.../FUNCTION"; without a host bridge it has no such place. */
static bool path_of(hwloc_obj_t o, char *path, size_t size)
{
	const struct hwloc_pcidev_attr_s *p = &o->attr->pcidev;
	size_t used;

	if (is_bridge(o, HWLOC_OBJ_BRIDGE_HOST))
		return snprintf(path, size, "/sys/devices/pci%04x:%02x",
			       o->attr->bridge.downstream.pci.domain,
			       o->attr->bridge.downstream.pci.secondary_bus) < (int)size;
	if (o->type != HWLOC_OBJ_PCI_DEVICE && !is_bridge(o, HWLOC_OBJ_BRIDGE_PCI))
		return snprintf(path, size, "/sys/devices/none") < (int)size;
	if (!path_of(o->parent, path, size))
		return false;
	used = strlen(path);
	return snprintf(path + used, size - used, "/%04x:%02x:%02x.%x", p->domain, p->bus, p->dev,
		       p->func) < (int)(size - used);
}

/* The names that the kernel knows a function by: folders in its own. */
static void put_names(struct writer *w, hwloc_obj_t function, const char *folder)
{
	char path[MR_ROOT_PATH_MAX];

	for (hwloc_obj_t o = function->io_first_child; o != NULL; o = o->next_sibling) {
		const char *of = NULL;

		if (o->type == HWLOC_OBJ_OS_DEVICE &&
			o->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
			of = "net";
		else if (o->type == HWLOC_OBJ_OS_DEVICE &&
			o->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
			of = "infiniband";
		if (of == NULL || o->name == NULL || o->name[0] == '\0' || o->name[0] == '.' ||
			strchr(o->name, '/') != NULL)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s/%s/", folder, of, o->name) <
			(int)sizeof(path))
			make_above(w, path);
	}
}

static void put_function(struct writer *w, hwloc_obj_t o)
{
	const struct hwloc_pcidev_attr_s *p = &o->attr->pcidev;
	char real[MR_ROOT_PATH_MAX - 64];
	char path[MR_ROOT_PATH_MAX];
	char link[64];

	if (!path_of(o, real, sizeof(real)))
		return;
	snprintf(link, sizeof(link), "sys/bus/pci/devices%s", strrchr(real, '/'));
#define AT(name) (snprintf(path, sizeof(path), "%s/" name, real + 1), path)
	put_at(w, AT("class"), "0x%04x00\n", p->class_id);
	put_at(w, AT("vendor"), "0x%04x\n", p->vendor_id);
	put_at(w, AT("device"), "0x%04x\n", p->device_id);
	put_at(w, AT("numa_node"), "%d\n", node_of(w, o));
#undef AT
	put_names(w, o, real + 1);
	make_above(w, link);
	if (w->rc == 0 && symlinkat(real, w->fd, link) != 0 && errno != EEXIST)
		w->rc = -errno;
}

static int load(const char *xml, hwloc_topology_t *ret_topology)
{
	struct stat st;

	if (stat(xml, &st) != 0)
		return -errno;
	if (st.st_size > XML_BYTES_MAX)
		return -EFBIG;
	if (hwloc_topology_init(ret_topology) != 0)
		return -ENOMEM;
	hwloc_topology_set_io_types_filter(*ret_topology, HWLOC_TYPE_FILTER_KEEP_ALL);
	hwloc_topology_set_flags(*ret_topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
	if (hwloc_topology_set_xml(*ret_topology, xml) == 0 &&
		hwloc_topology_load(*ret_topology) == 0)
		return 0;
	hwloc_topology_destroy(*ret_topology);
	return -EBADMSG;
}

bool mr_root_is_hwloc(const char *file)
{
	static const char begin[] = "<?xml";
	char text[sizeof(begin)] = "";
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && read(fd, text, sizeof(begin) - 1) == sizeof(begin) - 1 &&
		strcmp(text, begin) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

static int write_all(const char *xml, int folder)
{
	struct writer w = {.fd = folder};

	w.rc = load(xml, &w.topology);
	if (w.rc != 0)
		return w.rc;
	put_cpus(&w);
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_pcidev(w.topology, o)) != NULL;)
		put_function(&w, o);
	for (hwloc_obj_t o = NULL; (o = hwloc_get_next_bridge(w.topology, o)) != NULL;)
		if (is_bridge(o, HWLOC_OBJ_BRIDGE_PCI))
			put_function(&w, o);
	hwloc_topology_destroy(w.topology);
	return w.rc;
}

/* hwloc's own parser dies of some files that are damaged, so it reads them in a child. */
int mr_root_write_hwloc(const char *xml, int folder)
{
	int status, null;
	pid_t child = fork();

	if (child < 0)
		return -errno;
	if (child == 0) {
		null = open("/dev/null", O_RDWR);
		for (int i = 0; null >= 0 && i <= 2; i++)
			dup2(null, i);
		signal(SIGALRM, SIG_DFL);
		alarm(PARSE_S);
		_exit(-write_all(xml, folder));
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EBADMSG;
}
