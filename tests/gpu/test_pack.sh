#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The pack on a machine that has nothing: an empty root with busybox, where it runs on the
# software device, and over a stand-in of the driver as on a GPU. The tests in it are those
# of run; what is judged here is that the pack holds all they need, and what run says.
# usage: test_pack.sh BUILD LIBCUDA.so LIBGDRAPI.so
# 77: not root, no busybox or no dpdk-test-gpudev.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
busybox=$(command -v busybox) || {
	echo "busybox is not installed (package busybox-static)"
	exit 77
}
if ! command -v dpdk-test-gpudev >/dev/null; then
	echo "dpdk-test-gpudev is not installed (package dpdk-dev)"
	exit 77
fi
if ! unshare --mount true 2>/dev/null; then
	echo "this needs root, for a mount namespace"
	exit 77
fi
cuda=$(readlink -f "$2")
gdr=$(readlink -f "$3")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
address=0000:3b:00.0
failures=0

mkdir -p "$root/bin" "$root/dev" "$root/proc" "$root/sys/devices/system" "$root/tmp" \
	"$root/sys/bus/pci/devices" "$root/sys/module"
cp "$busybox" "$root/bin/busybox"
for applet in $("$busybox" --list); do
	[ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"
done
"$here/pack" "$1" "$work/pack.tar.gz"
tar -xzf "$work/pack.tar.gz" -C "$root"

# there COMMAND...: in the root, with the machine's /proc, /dev and CPUs and nothing else.
there() {
	# shellcheck disable=SC2016 # the inner shell's
	timeout -k 5 600 unshare --mount --pid --fork env -i "PATH=/bin" \
		MILLRACE_STANDIN="${standin-}" SKIPS="${skips-}" ROOT="$root" /bin/sh -c '
		/bin/mount --bind /dev "$ROOT/dev"
		/bin/mount -t proc proc "$ROOT/proc"
		/bin/mount --bind /sys/devices/system "$ROOT/sys/devices/system"
		cd "$ROOT/millrace-gpu" && exec /usr/sbin/chroot "$ROOT" /bin/sh -c \
			"cd /millrace-gpu && \"\$@\"" sh "$@"' sh "$@" >"$work/out" 2>&1
}

# expect STATUS WORDS COMMAND...
expect() {
	wanted=$1
	words=$2
	shift 2
	status=0
	there "$@" || status=$?
	if [ "$status" = "$wanted" ] && grep -q -e "$words" "$work/out"; then
		echo "ok   $*"
		return
	fi
	echo "FAIL $*: exit status $status, wanted $wanted and '$words'"
	sed 's/^/    /' "$work/out"
	sed -n 's/^FAIL \([a-z_]*\).*/\1/p' "$work/out" | while read -r name; do
		tail -n 5 "$root/millrace-gpu/gpu-results/$name" | cut -c 1-400 | sed "s|^|    $name: |"
	done
	failures=$((failures + 1))
}

expect 77 'skipped: no NVIDIA GPU on this machine' ./run
expect 2 usage ./run --slow
expect 77 'compute-sanitizer is not' ./sanitizer "$address"
expect 77 'no nvcc' ./rebuild
expect 0 '^11 passed, 0 failed, 1 skipped' ./run sim --quick
grep -q '^on the software device' "$work/out" || {
	echo "FAIL the software device is not named"
	failures=$((failures + 1))
}

# A GPU that has no driver, an old one, and one that works.
mkdir "$root/sys/bus/pci/devices/$address"
echo 0x10de >"$root/sys/bus/pci/devices/$address/vendor"
echo 0x030200 >"$root/sys/bus/pci/devices/$address/class"
expect 77 "skipped: $address: .*no NVIDIA driver" ./run
mkdir -p "$root/usr/lib64"
cp "$cuda" "$root/usr/lib64/libcuda.so.1"
standin="device=$address version=12080"
expect 77 "skipped: $address: .*CUDA 12.8.*13.0" ./run

if [ ! -f "$root/millrace-gpu/images" ]; then
	echo "the build has no CUDA image, so nothing more runs over the driver's stand-in"
	[ "$failures" = 0 ] || exit 1
	exit 0
fi
# The kernel knows nothing of a driver that is a library alone.
skips="--skip gpu.driver --skip gpu.kernel_module"
standin="device=$address,sms=8"
# The stand-in knows the kernels of Millrace and no other.
mv "$root/millrace-gpu/gemm.fatbin" "$root/tmp"
# It stops with its process as the software device does, so sigstop would be chance.
for only in gpudev vectors pipeline sigterm sigkill too_many no_such; do
	expect 0 "passed, 0 failed" ./run --quick --only "$only"
done
expect 0 "skip gpudev_cpu_map" ./run --only gpudev
cp "$gdr" "$root/usr/lib64/libgdrapi.so.2"
expect 0 "^1 passed, 0 failed, 0 skipped" ./run --only gpudev
expect 1 "FAIL 0000:3c:00.0: " ./run 0000:3c:00.0

# The tools of the CUDA toolkit start what they watch, and have an exit status for errors.
cat >"$root/bin/compute-sanitizer" <<'EOF'
#!/bin/sh
[ "$2" != racecheck ] || [ ! -e /tmp/race ] || exit "$6"
shift 6
exec "$@"
EOF
chmod +x "$root/bin/compute-sanitizer"
expect 0 "^ok   synccheck" ./sanitizer "$address"
touch "$root/tmp/race"
expect 1 "^FAIL racecheck: exit status 9" ./sanitizer "$address" racecheck

# What fails is said: a launch that the driver refuses.
standin="device=$address,sms=8 fail=cuLaunchKernel@1:701"
expect 1 "^0 passed, 1 failed" ./run --quick --only pipeline_pinned

# On a machine with a DPDK of its own, whose drivers are the same.
standin=
(cd "$work" && "$root/millrace-gpu/run" sim --quick --only pipeline) >"$work/out" 2>&1 || {
	cat "$work/out"
	failures=$((failures + 1))
}

# An image that is built there is the one that the programs have.
if command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; then
	pack=$root/millrace-gpu
	"$pack/rebuild" sm_90 >"$work/out" 2>&1 || {
		cat "$work/out"
		failures=$((failures + 1))
	}
	while read -r name offset bytes; do
		size=$(wc -c <"$pack/image.fatbin")
		tail -c +$((offset + 1)) "$pack/bin/$name" | head -c "$size" | cmp - "$pack/image.fatbin" || {
			echo "FAIL $name has another image ($bytes bytes at $offset)"
			failures=$((failures + 1))
		}
	done <"$pack/images"
	standin="device=$address,sms=8"
	expect 0 "passed, 0 failed" ./run --quick --only pipeline_pinned
fi
[ "$failures" = 0 ]
