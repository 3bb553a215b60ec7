/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port.h"

#include <errno.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * What makes a frame differ from the wire, by the start of the kernel's name for it:
 * frames merged on receive, cut on send, or not yet summed.
 */
static const char *const offloads[] = {"rx-gro", "rx-lro", "tx-generic-segmentation", "tx-tcp",
	"tx-udp-segmentation", "tx-checksum-"};

struct features {
	uint32_t words; /* that this kernel has */
	uint32_t active[MR_PORT_FEATURE_WORDS];
	uint32_t wanted[MR_PORT_FEATURE_WORDS];
};

struct feature_names {
	uint32_t count;
	char name[MR_PORT_FEATURE_WORDS * 32][ETH_GSTRING_LEN];
};

/* A request about an interface; names too long were refused before. */
static struct ifreq request(const char *ifname)
{
	struct ifreq r = {0};

	memcpy(r.ifr_name, ifname, strnlen(ifname, sizeof(r.ifr_name) - 1));
	return r;
}

static int ethtool(int fd, const char *ifname, void *command)
{
	struct ifreq r = request(ifname);

	r.ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, &r) < 0 ? -errno : 0;
}

static int features_read(int fd, const char *ifname, struct features *ret_features)
{
	uint32_t room[2 + 4 * MR_PORT_FEATURE_WORDS] = {0};
	struct ethtool_gfeatures *get = (struct ethtool_gfeatures *)room;
	int rc;

	get->cmd = ETHTOOL_GFEATURES;
	get->size = MR_PORT_FEATURE_WORDS;
	rc = ethtool(fd, ifname, get);
	if (rc == 0 && get->size > MR_PORT_FEATURE_WORDS)
		rc = -E2BIG;
	if (rc < 0)
		return rc;
	memset(ret_features, 0, sizeof(*ret_features));
	ret_features->words = get->size;
	for (uint32_t w = 0; w < get->size; w++) {
		ret_features->active[w] = get->features[w].active;
		ret_features->wanted[w] = get->features[w].requested;
	}
	return 0;
}

/* Sets those in `which`, all at once, since some are refused without others. */
static int features_write(
	int fd, const char *ifname, uint32_t words, const uint32_t *which, const uint32_t *wanted)
{
	uint32_t room[2 + 2 * MR_PORT_FEATURE_WORDS] = {0};
	struct ethtool_sfeatures *set = (struct ethtool_sfeatures *)room;

	set->cmd = ETHTOOL_SFEATURES;
	set->size = words;
	for (uint32_t w = 0; w < words; w++) {
		set->features[w].valid = which[w];
		set->features[w].requested = wanted[w];
	}
	return ethtool(fd, ifname, set);
}

/* The names of the features that these words have bits for, in the order of the bits. */
static int names_read(int fd, const char *ifname, uint32_t words, struct feature_names *ret_names)
{
	struct ethtool_gstrings *g;
	uint32_t room[4 + 1] = {ETHTOOL_GSSET_INFO, 0, 1u << ETH_SS_FEATURES, 0, 0};
	int rc = ethtool(fd, ifname, room);
	uint32_t count = room[4]; /* behind struct ethtool_sset_info */

	if (rc < 0)
		return rc;
	g = calloc(1, sizeof(*g) + (size_t)count * ETH_GSTRING_LEN);
	if (g == NULL)
		return -ENOMEM;
	g->cmd = ETHTOOL_GSTRINGS;
	g->string_set = ETH_SS_FEATURES;
	g->len = count;
	rc = ethtool(fd, ifname, g);
	memset(ret_names, 0, sizeof(*ret_names));
	ret_names->count = count < words * 32 ? count : words * 32;
	if (rc == 0)
		memcpy(ret_names->name, g->data, (size_t)ret_names->count * ETH_GSTRING_LEN);
	free(g);
	return rc;
}

static bool is_offload(const char *feature)
{
	for (size_t i = 0; i < MR_ARRAY_LEN(offloads); i++)
		if (strncmp(feature, offloads[i], strlen(offloads[i])) == 0)
			return true;
	return false;
}

static int interface_check(int fd, const char *ifname, uint32_t mtu, struct mr_err *err)
{
	struct ifreq r = request(ifname);

	if (ioctl(fd, SIOCGIFFLAGS, &r) != 0)
		return mr_err_set(err, -errno,
			"kernel interface '%s': %s; see 'ip link' for the names that exist", ifname,
			strerror(errno));
	if ((r.ifr_flags & IFF_UP) == 0)
		return mr_err_set(err, -ENETDOWN,
			"kernel interface '%s' is down; run 'ip link set %s up'", ifname, ifname);
	if (ioctl(fd, SIOCGIFMTU, &r) != 0)
		return mr_err_set(
			err, -errno, "kernel interface '%s': mtu: %s", ifname, strerror(errno));
	if (r.ifr_mtu > 0 && (uint32_t)r.ifr_mtu > mtu)
		return mr_err_set(err, -EMSGSIZE,
			"kernel interface '%s' has MTU %d, the port's mtu is %u: frames would not "
			"fit a buffer; set mtu: %d or run 'ip link set %s mtu %u'",
			ifname, r.ifr_mtu, mtu, r.ifr_mtu, ifname, mtu);
	return 0;
}

/*
 * What a process that is killed would have restored lies in EAL's runtime directory:
 * the next one of that name takes it over. The address tells an interface from
 * another one that was given its name and index.
 */
struct saved {
	uint32_t magic;
	int32_t index;
	uint8_t address[8];
	uint32_t words;
	uint32_t changed[MR_PORT_FEATURE_WORDS], wanted[MR_PORT_FEATURE_WORDS];
};

#define SAVED_MAGIC 0x314f524du /* "MRO1" */

static void saved_path(const struct mr_port_kernel *k, char *path, size_t size)
{
	snprintf(path, size, "%s/offloads-%s", rte_eal_get_runtime_dir(), k->ifname);
}

static void address_read(int fd, const char *ifname, uint8_t ret_address[8])
{
	struct ifreq r = request(ifname);

	memset(ret_address, 0, 8);
	if (ioctl(fd, SIOCGIFHWADDR, &r) == 0)
		memcpy(ret_address, r.ifr_hwaddr.sa_data, 6);
}

/* Adds to k what a killed process switched off and nobody has switched on since. */
static void saved_take(int fd, struct mr_port_kernel *k)
{
	char path[PATH_MAX];
	uint8_t address[8];
	struct saved s;
	FILE *f;
	size_t n;

	saved_path(k, path, sizeof(path));
	f = fopen(path, "rbe");
	if (f == NULL)
		return;
	n = fread(&s, sizeof(s), 1, f);
	fclose(f);
	address_read(fd, k->ifname, address);
	if (n != 1 || s.magic != SAVED_MAGIC || s.index != k->index || s.words != k->words ||
		memcmp(s.address, address, sizeof(address)) != 0)
		return;
	for (uint32_t w = 0; w < k->words; w++) {
		uint32_t more = s.changed[w] & ~k->changed[w];

		k->changed[w] |= more;
		k->wanted[w] |= more & s.wanted[w];
	}
}

/* A rename, so that a kill leaves the old or the new. Where it fails, nothing outlives a kill. */
static void saved_write(int fd, const struct mr_port_kernel *k)
{
	struct saved s = {.magic = SAVED_MAGIC, .index = k->index, .words = k->words};
	char path[PATH_MAX], fresh[PATH_MAX + 8];
	size_t n;
	FILE *f;

	address_read(fd, k->ifname, s.address);
	memcpy(s.changed, k->changed, sizeof(s.changed));
	memcpy(s.wanted, k->wanted, sizeof(s.wanted));
	saved_path(k, path, sizeof(path));
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	f = fopen(fresh, "wbe");
	if (f == NULL)
		return;
	n = fwrite(&s, sizeof(s), 1, f);
	if (fclose(f) != 0 || n != 1 || rename(fresh, path) != 0)
		unlink(fresh);
}

static void saved_remove(const struct mr_port_kernel *k)
{
	char path[PATH_MAX];

	saved_path(k, path, sizeof(path));
	unlink(path);
}

/* Switches off every offload that is on or wanted, and keeps what to restore in k. */
static int offloads_off(int fd, struct mr_port_kernel *k, struct mr_err *err)
{
	static const uint32_t none[MR_PORT_FEATURE_WORDS];
	struct feature_names names;
	struct features f = {0};
	int rc = features_read(fd, k->ifname, &f);

	if (rc == 0)
		rc = names_read(fd, k->ifname, f.words, &names);
	if (rc < 0)
		return mr_err_set(err, rc, "kernel interface '%s': reading its offloads: %s",
			k->ifname, strerror(-rc));
	for (uint32_t i = 0; i < names.count; i++) {
		uint32_t bit = 1u << i % 32;

		if (is_offload(names.name[i]) && ((f.active[i / 32] | f.wanted[i / 32]) & bit) != 0)
			k->changed[i / 32] |= bit;
	}
	k->words = f.words;
	memcpy(k->wanted, f.wanted, sizeof(k->wanted));
	saved_take(fd, k);
	if (memcmp(k->changed, none, sizeof(none)) == 0)
		return 0;
	saved_write(fd, k);
	rc = features_write(fd, k->ifname, k->words, k->changed, none);
	if (rc == 0)
		rc = features_read(fd, k->ifname, &f);
	for (uint32_t i = 0; rc == 0 && i < names.count; i++)
		if ((k->changed[i / 32] & f.active[i / 32] & 1u << i % 32) != 0)
			return mr_err_set(err, -EIO,
				"kernel interface '%s': its driver does not let %s be switched "
				"off; frames would not be those of the wire",
				k->ifname, names.name[i]);
	if (rc < 0)
		return mr_err_set(err, rc,
			"kernel interface '%s': cannot switch its offloads off: %s; frames would "
			"not be those of the wire (root or CAP_NET_ADMIN is needed)",
			k->ifname, strerror(-rc));
	return 0;
}

/* Before anything is changed: may this process read and write raw frames at all? */
static int raw_check(const char *ifname, struct mr_err *err)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return mr_err_set(err, -errno,
			"kernel interface '%s': raw socket: %s; root or CAP_NET_RAW and "
			"CAP_NET_ADMIN are needed",
			ifname, strerror(errno));
	close(fd);
	return 0;
}

int mr_port_kernel_prepare(
	struct mr_port_kernel *k, const char *ifname, uint32_t mtu, struct mr_err *err)
{
	int fd, rc;

	memset(k, 0, sizeof(*k));
	if (strlen(ifname) >= IFNAMSIZ)
		return mr_err_set(err, -ENODEV,
			"kernel interface '%s': names have at most %d characters", ifname,
			IFNAMSIZ - 1);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return mr_err_set(err, -errno, "socket: %s", strerror(errno));
	rc = interface_check(fd, ifname, mtu, err);
	if (rc == 0)
		rc = raw_check(ifname, err);
	if (rc == 0) {
		snprintf(k->ifname, sizeof(k->ifname), "%s", ifname);
		k->index = (int)if_nametoindex(ifname);
		rc = offloads_off(fd, k, err);
		if (rc < 0)
			mr_port_kernel_restore(k);
	}
	close(fd);
	return rc;
}

/* A socket to ask with, and the interface's name of now in r; or -1. */
static int open_by_index(const struct mr_port_kernel *k, struct ifreq *r)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memset(r, 0, sizeof(*r));
	r->ifr_ifindex = k->index;
	if (fd < 0 || ioctl(fd, SIOCGIFNAME, r) == 0)
		return fd;
	close(fd);
	return -1;
}

void mr_port_kernel_restore(struct mr_port_kernel *k)
{
	struct ifreq r;
	int fd;

	if (k->ifname[0] == '\0')
		return;
	/* An interface that is gone by now needs nothing restored. */
	fd = open_by_index(k, &r);
	if (fd >= 0) {
		(void)features_write(fd, r.ifr_name, k->words, k->changed, k->wanted);
		close(fd);
	}
	saved_remove(k);
	k->ifname[0] = '\0';
}

void mr_port_kernel_link(const struct mr_port_kernel *k, bool *ret_present, bool *ret_up)
{
	struct ifreq r;
	int fd = open_by_index(k, &r);

	*ret_present = fd >= 0;
	*ret_up = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0 &&
		(r.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
	if (fd >= 0)
		close(fd);
}
