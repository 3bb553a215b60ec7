#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs a command that sees no DPDK drivers but those that the tests use.
#
#     sh tests/few_drivers.sh COMMAND...
#
# EAL loads all that are installed, and ThreadSanitizer goes through the list of libraries
# again for each one: seconds for every start. Only the command sees the shorter list. Where
# the machine does not allow that, the command runs all the same, and slower.
set -u

if [ "${1-}" != --hidden ]; then
	unshare -m true 2>/dev/null && exec unshare -m sh "$0" --hidden "$@"
	echo "few_drivers.sh: no mount namespace here: every start takes seconds more" >&2
	exec "$@"
fi
shift

for folder in /usr/lib/*/dpdk/pmds-*; do
	few=$(mktemp -d) && mount -t tmpfs -o mode=755 few_drivers "$few" || exit 1
	for driver in bus_pci bus_vdev mempool_ring net_af_packet net_null net_pcap net_ring net_tap; do
		cp -P "$folder/librte_$driver".so* "$few"
	done
	mount --move "$few" "$folder" && rmdir "$few" || exit 1
done
exec "$@"
