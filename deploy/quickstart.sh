#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# From a fresh clone to packets through the kernel, in one command:
#
#     sh deploy/quickstart.sh
#
# Installs the missing Debian packages (the only step that needs root), builds, makes a
# small capture, runs config/demo.yaml on it in a scratch folder and checks what came
# out. Needs no GPU, NIC, CUDA toolkit or hugepages: the demo runs on the software
# device. The build lies in ./b, or in the folder that MILLRACE_BUILD names.
#
#     sh deploy/quickstart.sh --built PROGRAM     skip installing and building
#
# Exit status 0 only if every frame came out as it should.
set -eu

PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH
export PATH
source=$(cd "$(dirname "$0")/.." && pwd)

say() {
	echo "quickstart: $*"
}

case $#:${1-} in
0:)
	build=${MILLRACE_BUILD:-$source/b}
	millrace=$build/app/millrace
	sh "$source/deploy/packages.sh" build
	say "building in $build"
	[ -e "$build/build.ninja" ] || meson setup "$build" "$source" >&2
	ninja -C "$build" app/millrace >&2
	;;
2:--built)
	millrace=$(realpath "$2")
	;;
*)
	echo "usage: deploy/quickstart.sh [--built PROGRAM]" >&2
	exit 2
	;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
cp "$source/config/demo.yaml" .
/usr/bin/python3 "$source/deploy/demo.py" make in.pcap

say "running: millrace run demo.yaml --idle-exit 1 --json"
status=0
# DPDK leaves its runtime folder behind; here it goes with the scratch folder.
RUNTIME_DIRECTORY=$scratch "$millrace" run demo.yaml --idle-exit 1 --json --name "quickstart-$$" \
	>report.json 2>report.txt || status=$?
if [ "$status" != 0 ]; then
	cat report.txt >&2
	say "FAILED: millrace ended with status $status"
	exit 1
fi
/usr/bin/python3 "$source/deploy/demo.py" judge in.pcap out.pcap report.json
