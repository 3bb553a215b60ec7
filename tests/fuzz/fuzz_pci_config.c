/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any bytes as configuration space, addresses and links: no value without its part.
 */
#include "../unit/pci_config_fixture.h"

#include <stdlib.h>

static void parse_text(const char *text)
{
	struct mr_pci_addr addr, again;
	struct mr_pci_link link;
	char out[MR_PCI_ADDR_BYTES];
	char words[MR_PCI_LINK_BYTES];

	if (mr_pci_addr_parse(text, &addr)) {
		mr_pci_addr_format(&addr, out);
		if (!mr_pci_addr_parse(out, &again) || mr_pci_addr_compare(&addr, &again) != 0)
			abort();
	}
	mr_pci_link_parse(text, text, &link);
	if (!link_holds(&link))
		abort();
	mr_pci_link_format(&link, words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mr_pci_config config;
	char *text = malloc(size + 1);

	mr_pci_config_parse(data, size, &config);
	if (!pci_config_holds(&config, size) || text == NULL)
		abort();
	memcpy(text, data, size);
	text[size] = '\0';
	parse_text(text);
	free(text);
	return 0;
}
