#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs the Debian 12 packages that are missing.
#
#     sh deploy/packages.sh build         what the build needs
#     sh deploy/packages.sh build test    and what the tests need
#     sh deploy/packages.sh --list build  prints their names, and installs nothing
#
# Asks the package manager only for what is not installed, so a machine that has
# everything needs neither network nor root. Exit status 0 if all is there.
set -u

build="gcc libc6-dev meson ninja-build pkg-config python3
	libdpdk-dev libcyaml-dev libyaml-dev libjansson-dev libarchive-dev libhwloc-dev libmicrohttpd-dev libsystemd-dev
	libcrypt-dev libelf-dev libpcap-dev"
tests="openssl systemd g++ libcmocka-dev dpdk-dev python3-numpy python3-scapy python3-jsonschema
	clang-format-14 clang libclang-rt-14-dev shellcheck binutils util-linux iproute2 procps
	tcpreplay tcpdump tshark ethtool iputils-ping qemu-system-x86 busybox-static valgrind
	gnuplot-nox mandoc man-db chromium debhelper dpkg-dev lintian debootstrap e2fsprogs"

# Debian's npm wants Debian's node, so where there is one of another origin, that is taken.
command -v npm >/dev/null 2>&1 || tests="$tests nodejs npm"

list=no
if [ "${1-}" = --list ]; then
	list=yes
	shift
fi
wanted=
for part in "$@"; do
	case $part in
	build) wanted="$wanted $build" ;;
	test) wanted="$wanted $tests" ;;
	*)
		echo "packages.sh: '$part' is not one of: build test" >&2
		exit 2
		;;
	esac
done

if [ "$list" = yes ]; then
	# shellcheck disable=SC2086 # a list of words
	printf '%s\n' $wanted
	exit 0
fi

if ! command -v dpkg-query >/dev/null 2>&1; then
	echo "packages.sh: this machine has no dpkg; install by hand what corresponds to the" \
		"Debian packages$wanted" >&2
	exit 1
fi

missing=
for package in $wanted; do
	state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)
	[ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ]; then
	as_root=
elif command -v sudo >/dev/null 2>&1; then
	as_root=sudo
else
	echo "packages.sh: these packages are missing and only root can install them;" \
		"as root: apt-get install$missing" >&2
	exit 1
fi

echo "packages.sh: installing$missing" >&2
install() {
	# shellcheck disable=SC2086 # a list of words
	$as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -q -y --no-install-recommends install $missing >&2
}
# The lists of a new machine are empty or old, so a failure is tried again after an update.
if ! install; then
	$as_root apt-get -q update >&2
	if ! install; then
		echo "packages.sh: apt-get could not install$missing; see its words above" >&2
		exit 1
	fi
fi
