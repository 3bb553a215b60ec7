/* SPDX-License-Identifier: BSD-3-Clause */
#include "mr_pci.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A hexadecimal number of min to max digits at *text, which is moved behind it. */
static bool take_hex(const char **text, int min, int max, uint32_t *ret_value)
{
	uint32_t v = 0;
	int n = 0;

	while (n < max && hex_digit((*text)[n]) >= 0)
		v = v << 4 | (uint32_t)hex_digit((*text)[n++]);
	*text += n;
	*ret_value = v;
	return n >= min;
}

static bool at_end(const char *s)
{
	return s[s[0] == '\n'] == '\0';
}

bool mr_pci_addr_parse(const char *text, struct mr_pci_addr *ret_addr)
{
	uint32_t domain = 0, bus, device, function;
	const char *s = text;

	/* Two digits and a colon are a bus; a domain has more. */
	if (!take_hex(&s, 2, 8, &bus))
		return false;
	if (s - text >= 4) {
		domain = bus;
		if (*s++ != ':' || !take_hex(&s, 2, 2, &bus))
			return false;
	} else if (s - text != 2) {
		return false;
	}
	if (*s++ != ':' || !take_hex(&s, 2, 2, &device) || device > 31)
		return false;
	if (*s++ != '.' || !take_hex(&s, 1, 1, &function) || function > 7 || !at_end(s))
		return false;
	*ret_addr = (struct mr_pci_addr){domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function};
	return true;
}

void mr_pci_addr_format(const struct mr_pci_addr *addr, char ret_text[MR_PCI_ADDR_BYTES])
{
	snprintf(ret_text, MR_PCI_ADDR_BYTES, "%04" PRIx32 ":%02x:%02x.%x", addr->domain, addr->bus,
		addr->device & 31u, addr->function & 7u);
}

int mr_pci_addr_compare(const struct mr_pci_addr *a, const struct mr_pci_addr *b)
{
	uint32_t low_a = (uint32_t)a->bus << 16 | (uint32_t)a->device << 8 | a->function;
	uint32_t low_b = (uint32_t)b->bus << 16 | (uint32_t)b->device << 8 | b->function;

	if (a->domain != b->domain)
		return a->domain < b->domain ? -1 : 1;
	return (low_a > low_b) - (low_a < low_b);
}

/* A decimal number of at most 4 digits at *text, which is moved behind it. */
static bool take_decimal(const char **text, uint32_t *ret_value)
{
	const char *s = *text;
	uint32_t v = 0;

	while (*s >= '0' && *s <= '9' && s - *text < 5)
		v = v * 10 + (uint32_t)(*s++ - '0');
	if (s == *text || s - *text > 4)
		return false;
	*text = s;
	*ret_value = v;
	return true;
}

/* "2.5 GT/s", "16 GT/s", "16.0 GT/s PCIe" */
static uint32_t parse_speed(const char *s)
{
	static const uint32_t speeds[] = {2500, 5000, 8000, 16000, 32000, 64000};
	uint32_t mts, tenth = 0;

	if (s == NULL || !take_decimal(&s, &mts))
		return 0;
	if (s[0] == '.' && s[1] >= '0' && s[1] <= '9') {
		tenth = (uint32_t)(s[1] - '0');
		s += 2;
	}
	if (strncmp(s, " GT/s", 5) != 0 || (!at_end(s + 5) && s[5] != ' '))
		return 0;
	mts = mts * 1000 + tenth * 100;
	for (size_t i = 0; i < MR_ARRAY_LEN(speeds); i++)
		if (speeds[i] == mts)
			return mts;
	return 0;
}

static uint32_t parse_width(const char *s)
{
	static const uint32_t widths[] = {1, 2, 4, 8, 12, 16, 32};
	uint32_t v;

	if (s == NULL || !take_decimal(&s, &v) || !at_end(s))
		return 0;
	for (size_t i = 0; i < MR_ARRAY_LEN(widths); i++)
		if (widths[i] == v)
			return v;
	return 0;
}

void mr_pci_link_parse(const char *speed, const char *width, struct mr_pci_link *ret_link)
{
	*ret_link = (struct mr_pci_link){parse_speed(speed), parse_width(width)};
}

void mr_pci_link_format(const struct mr_pci_link *link, char ret_text[MR_PCI_LINK_BYTES])
{
	char width[8] = "?";
	char speed[16] = "?";

	if (link->width != 0)
		snprintf(width, sizeof(width), "%" PRIu32, link->width % 1000);
	if (link->speed_mts != 0)
		snprintf(speed, sizeof(speed), "%" PRIu32 ".%" PRIu32, link->speed_mts / 1000,
			link->speed_mts % 1000 / 100);
	snprintf(ret_text, MR_PCI_LINK_BYTES, "x%s %s GT/s", width, speed);
}

uint64_t mr_pci_link_mbps(const struct mr_pci_link *link)
{
	uint64_t raw = (uint64_t)link->speed_mts * link->width;

	if (link->speed_mts <= 5000)
		return raw * 8 / 10;
	if (link->speed_mts <= 32000)
		return raw * 128 / 130;
	return raw * 242 / 256;
}
