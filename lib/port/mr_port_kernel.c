/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_port.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Every offload that makes a frame differ from the wire, by its old ethtool calls. */
static const struct offload {
	const char *name;
	uint32_t get, set;
} offloads[MR_PORT_OFFLOADS] = {
	{"gro", ETHTOOL_GGRO, ETHTOOL_SGRO},
	{"tso", ETHTOOL_GTSO, ETHTOOL_STSO},
	{"gso", ETHTOOL_GGSO, ETHTOOL_SGSO},
	/* LRO has no call of its own; it is a bit of the flags. */
	{"lro", ETHTOOL_GFLAGS, ETHTOOL_SFLAGS},
	/* Last: the kernel switches TSO and GSO off with it and would lose their state. */
	{"tx checksum", ETHTOOL_GTXCSUM, ETHTOOL_STXCSUM},
};

static int ethtool(int fd, const char *ifname, uint32_t cmd, uint32_t *value)
{
	struct ethtool_value v = {.cmd = cmd, .data = *value};
	struct ifreq r = {0};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", ifname);
	r.ifr_data = (char *)&v;
	if (ioctl(fd, SIOCETHTOOL, &r) != 0)
		return -errno;
	*value = v.data;
	return 0;
}

static int offload_read(int fd, const char *ifname, const struct offload *o, bool *ret_on)
{
	uint32_t v = 0;
	int rc = ethtool(fd, ifname, o->get, &v);

	if (rc == 0)
		*ret_on = o->get == ETHTOOL_GFLAGS ? (v & ETH_FLAG_LRO) != 0 : v != 0;
	return rc;
}

static int offload_write(int fd, const char *ifname, const struct offload *o, bool on)
{
	uint32_t v = on;
	int rc;

	if (o->set == ETHTOOL_SFLAGS) {
		v = 0;
		rc = ethtool(fd, ifname, o->get, &v);
		if (rc < 0)
			return rc;
		v = on ? v | ETH_FLAG_LRO : v & ~(uint32_t)ETH_FLAG_LRO;
	}
	return ethtool(fd, ifname, o->set, &v);
}

static int interface_check(int fd, const char *ifname, uint32_t mtu, struct mr_err *err)
{
	struct ifreq r = {0};

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", ifname);
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
	if (rc < 0) {
		close(fd);
		return rc;
	}
	snprintf(k->ifname, sizeof(k->ifname), "%s", ifname);
	/* Read all before the first is written: switching one off may take others along. */
	for (uint32_t i = 0; i < MR_PORT_OFFLOADS; i++) {
		bool on = false;

		if (offload_read(fd, ifname, &offloads[i], &on) == 0 && on)
			k->was_on |= 1u << i;
	}
	for (uint32_t i = 0; i < MR_PORT_OFFLOADS; i++) {
		bool on = false;

		if ((k->was_on >> i & 1) == 0)
			continue;
		rc = offload_write(fd, ifname, &offloads[i], false);
		if (rc == 0)
			rc = offload_read(fd, ifname, &offloads[i], &on);
		if (rc < 0 || on) {
			rc = rc < 0 ? rc : -EIO;
			close(fd);
			mr_port_kernel_restore(k);
			return mr_err_set(err, rc,
				"kernel interface '%s': cannot switch %s off: %s; frames would not "
				"be those of the wire (root or CAP_NET_ADMIN is needed)",
				ifname, offloads[i].name, strerror(-rc));
		}
	}
	close(fd);
	return 0;
}

void mr_port_kernel_restore(struct mr_port_kernel *k)
{
	int fd;

	if (k->ifname[0] == '\0')
		return;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	/* Checksums first: the kernel refuses TSO and GSO without them. */
	for (uint32_t i = MR_PORT_OFFLOADS; fd >= 0 && i-- > 0;)
		if ((k->was_on >> i & 1) != 0)
			(void)offload_write(fd, k->ifname, &offloads[i], true);
	if (fd >= 0)
		close(fd);
	k->ifname[0] = '\0';
}
