#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Builds the Debian packages millrace and millrace-dev, and what goes with them, in FOLDER.
#
#     sh deploy/package.sh FOLDER                     compile, and pack
#     sh deploy/package.sh --prepared BUILD FOLDER    pack what a build folder has
#
# Works in a copy of the tree in a folder of its own below FOLDER, which ends with it. FOLDER is
# not in the tree, since all that is there is copied. Version and day are those of meson.build.
# Exit status 0 only if there are packages.
set -eu

PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH
export PATH
source=$(cd "$(dirname "$0")/.." && pwd)

fail() {
	echo "package.sh: $*" >&2
	exit 1
}

prepared=
if [ "${1-}" = --prepared ] && [ $# = 3 ]; then
	[ -e "$2/build.ninja" ] || fail "$2 is no build folder; make one: meson setup $2"
	prepared=$(realpath "$2")
	shift 2
fi
if [ $# != 1 ]; then
	echo "usage: deploy/package.sh [--prepared BUILD] FOLDER" >&2
	exit 2
fi
command -v dh >/dev/null || fail "debhelper is not installed: apt-get install debhelper"
mkdir -p "$1"
folder=$(realpath "$1")
case $folder/ in
"$source"/*) fail "$folder lies in the tree that is packed; name a folder outside of $source" ;;
esac

version=$(sed -n "s/^  version: '\(.*\)',\$/\1/p" "$source/meson.build")
day=$(sed -n "s/^release_day = '\(.*\)'\$/\1/p" "$source/meson.build")
if [ -z "$version" ] || [ -z "$day" ]; then
	fail "meson.build has no line of version or release_day"
fi
if [ -n "$prepared" ]; then
	prefix=$(meson introspect --buildoptions "$prepared" |
		python3 -c 'import json, sys; print(*[o["value"] for o in json.load(sys.stdin) if o["name"] == "prefix"])')
	[ "$prefix" = /usr ] ||
		fail "$prepared installs to $prefix; a package is made of one with prefix /usr: meson configure $prepared -Dprefix=/usr"
	export MILLRACE_PREPARED="$prepared"
fi

work=$(mktemp -d "$folder/.millrace-XXXXXX")
trap 'rm -rf "$work"' EXIT
copy=$work/millrace-$version
mkdir "$copy"
# Build folders in the tree are no part of it.
(cd "$source" && find . -name .git -prune -o -name __pycache__ -prune -o -type d -exec test -d '{}/meson-private' \; -prune \
	-o -type f -print0 | tar -c --null -T - -f -) | tar -x -C "$copy" -f -
ln -s deploy/debian "$copy/debian"

build=$(sh "$source/deploy/packages.sh" --list build | paste -s -d, | sed 's/,/, /g')
sed -i -e '/^#/d' -e "s/@build@/$build/" "$copy/debian/control"
sed -i '/^#/d' "$copy"/debian/*.install
cat >"$copy/debian/changelog" <<END
millrace ($version) unstable; urgency=medium

  * Version $version.

 -- $(sed -n 's/^Maintainer: //p' "$copy/debian/control")  $(LC_ALL=C date -u -R -d "$day")
END

cd "$copy"
# What was prepared was compiled with what is here.
dpkg-buildpackage -us -uc -b ${prepared:+-d} >"$folder/build.log" 2>&1 || {
	tail -40 "$folder/build.log" >&2
	fail "dpkg-buildpackage failed; all of its words: $folder/build.log"
}
find "$work" -maxdepth 1 -type f -exec mv -f '{}' "$folder" ';'
ls "$folder"/*.deb
