/* SPDX-License-Identifier: BSD-3-Clause */
/* Which path of its list a lane takes, and what became of the others. */
#include "mr_plan_priv.h"

#include <stdio.h>
#include <string.h>

static bool is_software(const struct mr_plan_port *p)
{
	return p->kind != MR_PORT_PCI;
}

_Static_assert(MR_HOST_LANES_MAX >= MR_LANES_MAX, "a lane without a place");

/* Whether direct can hold between a lane and a port; if not, why says so. */
static bool direct_holds(const struct mr_plan_work *w, uint32_t lane, const struct mr_plan_port *p,
	char why[MR_TEXT_MAX])
{
	const struct mr_plan_device *d = &w->plan->devices[w->plan->lanes[lane].device];

	if (w->host->no_direct[lane][0] != '\0') {
		snprintf(why, MR_TEXT_MAX, "%s", w->host->no_direct[lane]);
		return false;
	}
	if (d->sim || !is_software(p))
		return true;
	snprintf(why, MR_TEXT_MAX,
		"the driver of port '%s' would copy with the CPU into the memory of GPU '%s'",
		p->name, d->name);
	return false;
}

struct wish {
	const enum mr_path *list;
	uint32_t count;
	char key[64];
};

static struct wish make_wish(const struct mr_config_lane *c, uint32_t lane, bool rx)
{
	const enum mr_path *own = rx ? c->rx_path : c->tx_path;
	uint32_t count = rx ? c->rx_path_count : c->tx_path_count;
	struct wish wish = {count > 0 ? own : c->path, count > 0 ? count : c->path_count, ""};

	snprintf(wish.key, sizeof(wish.key), "lanes[%u].%s", lane,
		count == 0   ? "path"
			: rx ? "rx_path"
			     : "tx_path");
	return wish;
}

/* Returns whether the list may be judged further. */
static bool check_list(struct mr_plan_work *w, uint32_t lane, const char *name,
	const enum mr_path *list, uint32_t count)
{
	uint32_t before = w->ps->count;
	char key[64];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "lanes[%u].%s[%u]", lane, name, i);
		for (uint32_t k = 0; k < i; k++) {
			if (list[k] != list[i])
				continue;
			mr_plan_refuse(w, key, "name each path once", "%s is already in the list",
				mr_path_name(list[i]));
			break;
		}
	}
	return w->ps->count == before;
}

/* The first wish that can hold, or MR_PATH_COUNT; only direct can fail to. */
static enum mr_path choose(const struct wish *wish, bool direct)
{
	for (uint32_t i = 0; i < wish->count; i++)
		if (wish->list[i] != MR_PATH_DIRECT || direct)
			return wish->list[i];
	return MR_PATH_COUNT;
}

/* Why this path of the list; why: what keeps direct from holding. */
static void explain(char text[MR_TEXT_MAX / 2 - 8], const struct mr_plan_device *d,
	enum mr_path path, bool software, const struct wish *wish, const char *why)
{
	const size_t size = MR_TEXT_MAX / 2 - 8;

	if (path != wish->list[0])
		snprintf(text, size, "second choice: %.200s", why);
	else if (path == MR_PATH_PINNED)
		snprintf(text, size, "first choice: host memory that device '%s' maps", d->name);
	else if (path == MR_PATH_STAGED)
		snprintf(text, size,
			"first choice: host memory, copied to and from device '%s' by the lane",
			d->name);
	else if (d->sim)
		snprintf(text, size,
			"first that holds: memory of the software device, written by the %s",
			software ? "port's driver" : "NIC");
	else
		snprintf(text, size,
			"first that holds: NIC and GPU '%s' are both on PCI; proven at start-up",
			d->name);
}

static void explain_lane(struct mr_plan_work *w, struct mr_plan_lane *l, const struct wish *rx,
	const char *rx_why, const struct wish *tx, const char *tx_why)
{
	const struct mr_plan_device *d = &w->plan->devices[l->device];
	char in[MR_TEXT_MAX / 2 - 8], out[MR_TEXT_MAX / 2 - 8];

	explain(in, d, l->rx_path, is_software(&w->plan->ports[l->rx_port]), rx, rx_why);
	if (!mr_plan_lane_moves(l)) {
		memcpy(l->path_why, in, sizeof(in));
		return;
	}
	explain(out, d, l->tx_path, is_software(&w->plan->ports[l->tx[0].port]), tx, tx_why);
	snprintf(l->path_why, sizeof(l->path_why), "in: %s; out: %s", in, out);
}

static void list_choices(struct mr_plan_choice *list, uint32_t *ret_count, const struct wish *wish,
	enum mr_path taken, const char *why)
{
	bool before = true;

	*ret_count = wish->count;
	for (uint32_t i = 0; i < wish->count; i++) {
		struct mr_plan_choice *c = &list[i];

		c->path = wish->list[i];
		c->what = c->path == taken ? MR_CHOICE_TAKEN
			: before           ? MR_CHOICE_REFUSED
					   : MR_CHOICE_NEXT;
		before &= c->path != taken;
		snprintf(c->why, sizeof(c->why), "%.250s", c->what == MR_CHOICE_REFUSED ? why : "");
	}
}

void mr_plan_path(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	struct mr_plan_lane *l = &w->plan->lanes[lane];
	struct wish rx = make_wish(c, lane, true);
	struct wish tx = make_wish(c, lane, false);
	char rx_why[MR_TEXT_MAX] = "", tx_why[MR_TEXT_MAX] = "";
	bool rx_holds = direct_holds(w, lane, &w->plan->ports[l->rx_port], rx_why);
	bool tx_holds = true;

	for (uint32_t t = 0; t < l->tx_count && tx_holds; t++)
		tx_holds = direct_holds(w, lane, &w->plan->ports[l->tx[t].port], tx_why);
	if (c->rx_path_count == 0 && c->tx_path_count == 0) {
		/* One list for both: what is taken holds on both sides. */
		if (!tx_holds && rx_holds)
			memcpy(rx_why, tx_why, sizeof(rx_why));
		rx_holds = tx_holds = rx_holds && tx_holds;
	}
	l->rx_path = choose(&rx, rx_holds);
	l->tx_path = choose(&tx, tx_holds);
	if (l->rx_path == MR_PATH_COUNT)
		mr_plan_refuse(
			w, rx.key, "add pinned to the list", "direct cannot hold: %.400s", rx_why);
	else if (l->tx_path == MR_PATH_COUNT)
		mr_plan_refuse(
			w, tx.key, "add pinned to the list", "direct cannot hold: %.400s", tx_why);
	else
		explain_lane(w, l, &rx, rx_why, &tx, tx_why);
	l->one_list = c->rx_path_count == 0 && c->tx_path_count == 0;
	list_choices(l->rx_choice, &l->rx_choices, &rx, l->rx_path, rx_why);
	list_choices(l->tx_choice, &l->tx_choices, &tx, l->tx_path, l->one_list ? rx_why : tx_why);
	if (l->rx_path == MR_PATH_DIRECT || l->tx_path == MR_PATH_DIRECT)
		memcpy(l->path_unasked, w->host->unasked[lane], sizeof(w->host->unasked[lane]));
}

bool mr_plan_path_lists(struct mr_plan_work *w, uint32_t lane)
{
	const struct mr_config_lane *c = &w->cfg->lanes[lane];
	bool good = check_list(w, lane, "path", c->path, c->path_count);

	good &= check_list(w, lane, "rx_path", c->rx_path, c->rx_path_count);
	return check_list(w, lane, "tx_path", c->tx_path, c->tx_path_count) && good;
}
