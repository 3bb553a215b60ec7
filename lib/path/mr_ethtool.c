/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE 1
#include "mr_ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNTERS_MAX 65536u /* more than any driver has */
#define COUNTERS_ROOM (2 * COUNTERS_MAX)

static int ask(int sock, const char *ifname, void *data)
{
	struct ifreq request = {0};

	memcpy(request.ifr_name, ifname, strlen(ifname) + 1);
	request.ifr_data = data;
	return ioctl(sock, SIOCETHTOOL, &request) == 0 ? 0 : -errno;
}

static int count_all(int sock, const char *ifname, uint32_t *ret_count)
{
	union {
		struct ethtool_sset_info info;
		unsigned char room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_STATS}};
	int rc = ask(sock, ifname, &set);

	if (rc < 0)
		return rc;
	*ret_count = set.info.sset_mask != 0 ? set.info.data[0] : 0;
	return *ret_count > 0 && *ret_count <= COUNTERS_MAX ? 0 : -EOPNOTSUPP;
}

static void pick(const struct ethtool_gstrings *names, const struct ethtool_stats *values,
	struct mr_ethtool_counter *counters, uint32_t count)
{
	for (uint32_t i = 0; i < names->len; i++)
		for (uint32_t k = 0; k < count; k++)
			if (strncmp((const char *)names->data + (size_t)i * ETH_GSTRING_LEN,
				    counters[k].name, ETH_GSTRING_LEN) == 0) {
				counters[k].known = true;
				counters[k].value = values->data[i];
			}
}

static int read_all(
	int sock, const char *ifname, struct mr_ethtool_counter *counters, uint32_t count)
{
	struct ethtool_gstrings *names = NULL;
	struct ethtool_stats *values = NULL;
	uint32_t all = 0;
	int rc = count_all(sock, ifname, &all);

	if (rc < 0)
		return rc;
	/* A kernel writes as many as there are by then, which can be more than it was asked for. */
	names = calloc(1, sizeof(*names) + (size_t)COUNTERS_ROOM * ETH_GSTRING_LEN);
	values = calloc(1, sizeof(*values) + COUNTERS_ROOM * sizeof(values->data[0]));
	if (names == NULL || values == NULL) {
		rc = -ENOMEM;
	} else {
		*names = (struct ethtool_gstrings){
			.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = all};
		*values = (struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = all};
		rc = ask(sock, ifname, names);
		if (rc == 0)
			rc = ask(sock, ifname, values);
		if (rc == 0 && (names->len != all || values->n_stats != all))
			rc = -EIO;
		if (rc == 0)
			pick(names, values, counters, count);
	}
	free(names);
	free(values);
	return rc;
}

int mr_ethtool_read(const char *ifname, struct mr_ethtool_counter *counters, uint32_t count)
{
	int sock, rc;

	for (uint32_t i = 0; i < count; i++)
		counters[i].known = false;
	if (strlen(ifname) >= IFNAMSIZ)
		return -ENODEV;
	sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -errno;
	rc = read_all(sock, ifname, counters, count);
	close(sock);
	return rc;
}
