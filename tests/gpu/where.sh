# shellcheck shell=sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Where the programs are: read by the scripts beside it, which set `here` before.
#
# In a pack (see pack) they run by the loader and the libraries that came with them, so
# that the machine's own C library does not matter; only the driver's libraries are the
# machine's. In the tree they are those of a build folder: ./b or MILLRACE_BUILD.
#
#     find_driver FOLDER     links to libcuda.so.1 and what belongs to it, if there is one
#     start PROGRAM ARGS...  becomes the program; for a subshell

# shellcheck disable=SC2154 # here
if [ -x "$here/bin/millrace" ]; then
	packed=1
	build=
else
	packed=
	build=$(cd "${MILLRACE_BUILD:-$here/../../b}" 2>/dev/null && pwd) || build=
	if [ ! -x "$build/app/millrace" ]; then
		echo "$here: no build in ${MILLRACE_BUILD:-./b}; MILLRACE_BUILD names it" >&2
		exit 2
	fi
fi
driver=

# The folders in which a loader would look for a library.
library_folders() {
	echo "${LD_LIBRARY_PATH-}" | tr : '\n' | grep .
	{ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null |
		sed -n 's/.*x86-64.* => \(.*\)\/lib\(cuda\.so\.1\|gdrapi\.so\.2\)$/\1/p'
	printf '%s\n' /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/lib \
		/usr/local/nvidia/lib64 /usr/local/lib
}

# Links to the driver's libraries alone: a folder of the machine has another C library too.
find_driver() {
	mkdir -p "$1"
	for wanted in libcuda.so.1 libgdrapi.so.2; do
		library_folders | while read -r folder; do
			[ -e "$folder/$wanted" ] || continue
			for library in "$folder/$wanted" "$folder"/libnvidia-*.so*; do
				if [ -e "$library" ] && [ ! -e "$1/${library##*/}" ]; then
					ln -s "$(readlink -f "$library")" "$1/${library##*/}"
				fi
			done
			break
		done
	done
	driver=$1
}

start() {
	program=$1
	shift
	if [ -n "$packed" ]; then
		exec "$here/lib/loader" --library-path "$driver:$here/lib" "$here/bin/$program" "$@"
	fi
	export LD_LIBRARY_PATH="$driver:$build/drivers:$build/tests/gpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	case $program in
	millrace) exec "$build/app/millrace" "$@" ;;
	dpdk-test-gpudev) exec dpdk-test-gpudev "$@" ;;
	*) exec "$build/tests/gpu/$program" "$@" ;;
	esac
}
