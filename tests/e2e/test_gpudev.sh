#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# DPDK's own gpudev test over the plug-in, on the software device and, with stand-ins of the
# NVIDIA driver and GDRCopy, on the provider of real GPUs.
# usage: test_gpudev.sh PLUGIN.so LIBCUDA.so LIBGDRAPI.so
# It prints PASSED or FAILED for each of its five parts and exits with 0 whatever
# they say, so the text is judged. 77: dpdk-test-gpudev is not installed.
set -eu

plugin=$(readlink -f "$1")
cuda=$(readlink -f "$2")
gdr=$(readlink -f "$3")
if ! command -v dpdk-test-gpudev >/dev/null; then
	echo "dpdk-test-gpudev is not installed (package dpdk-dev)"
	exit 77
fi

# The test program knows no sanitizer, and the plug-in's comes too late.
if ldd "$plugin" | grep -q -E 'lib(asan|tsan)'; then
	echo "the plug-in is built with a sanitizer"
	exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
	echo "FAIL: $*"
	sed 's/^/    /' "$work/out"
	failures=$((failures + 1))
}

mkdir "$work/cuda" "$work/gdr"
ln -s "$cuda" "$work/cuda/libcuda.so.1"
ln -s "$gdr" "$work/gdr/libgdrapi.so.2"
libraries=$work

# By bare soname: EAL refuses a path below a world-writable folder such as /tmp. A
# name that exists in the working folder would be such a path, so that is another one.
# meson's own LD_LIBRARY_PATH would show the stand-ins where there must be none.
run() {
	(cd "$work" && LD_LIBRARY_PATH="$(dirname "$plugin"):$libraries" \
		timeout 60 dpdk-test-gpudev --no-huge --no-pci --no-telemetry \
		--file-prefix "mr-gpudev-$$" -d "$(basename "$plugin")" "$@") >"$work/out" 2>&1
}

# DPDK drivers/gpu/cuda/cuda.c:1223: only the device with number 0 loads the driver. DPDK
# app/test-gpudev/main.c: the exit status is success when a part failed.
# passes NAME ARGUMENTS...
passes() {
	name=$1
	shift
	run "$@" || fail "$name: exit status $?"
	[ "$(grep -c 'TEST: PASSED' "$work/out")" = 5 ] || fail "$name: not five parts PASSED"
	if grep -q -E 'TEST: FAILED|ERROR' "$work/out"; then
		fail "$name: a part FAILED"
	fi
	if grep -q -i -E 'already registered|bus .* twice|duplicate' "$work/out"; then
		fail "$name: something was registered twice"
	fi
}

passes "default device" --vdev gpu_millrace0
grep -q 'DPDK found 1 GPUs' "$work/out" || fail "not one device"
passes "device by argument" --vdev gpu_millrace0,device=sim,mem=16MiB,bar=64KiB,sms=2
grep -q 'Tot memory 16.00 MB, Tot processors 2' "$work/out" || fail "options not honoured"
passes "two devices" --vdev gpu_millrace0 --vdev gpu_millrace_g1,sim,ordering=none,flush=memops
grep -q 'DPDK found 2 GPUs' "$work/out" || fail "not two devices"
# Without a window the mapping part cannot pass, and the list falls back to host memory.
run --vdev gpu_millrace0,map=0 || fail "no window: exit status $?"
[ "$(grep -c 'TEST: PASSED' "$work/out")" = 4 ] || fail "no window: not four parts PASSED"
grep -q 'cannot be mapped for the CPU' "$work/out" || fail "no window: no sentence says so"

# What must not pass does not: the judge above can fail.
run --vdev gpu_millrace0,fault=alloc@1 || true
grep -q 'TEST: FAILED' "$work/out" || fail "a failed allocation went unseen"
if run --vdev gpu_millrace0,speed=9; then
	fail "an unknown option was accepted"
fi
grep -q "option 'speed' is not known" "$work/out" || fail "an unknown option has no sentence"

# The driver is loaded by the first real device, whichever number that has: DPDK's own driver
# loads it with device 0 only (drivers/gpu/cuda/cuda.c:1223).
libraries=$work/cuda:$work/gdr
export MILLRACE_STANDIN="device=0000:af:00.0,sms=5 device=0000:3b:00.0,sms=7,mem=32MiB skew=512 log=$work/log"
passes "real device" --vdev gpu_millrace0,device=0000:3b:00.0
grep -q 'Tot memory 32.00 MB, Tot processors 7' "$work/out" || fail "not the device at that address"
grep -q '^count cuMemAlloc_v2' "$work/log" || fail "the driver was not asked"
if grep -E '^(wrong|left)' "$work/log"; then
	fail "real device: misused, or something was left"
fi
passes "software device first" --vdev gpu_millrace0 --vdev gpu_millrace_g1,device=0000:af:00.0
grep -q 'Tot processors 5' "$work/out" || fail "the second device is not the real one"
passes "two real devices" --vdev gpu_millrace0,device=0000:3b:00.0 \
	--vdev gpu_millrace_g1,device=0000:af:00.0
export MILLRACE_STANDIN="device=0000:3b:00.0,ordering=none,flush=memops log=$work/flushes"
passes "writes not ordered" --vdev gpu_millrace0,device=0000:3b:00.0
if grep -q '^count cuStreamWaitValue32_v2 0' "$work/flushes"; then
	fail "a barrier did not flush"
fi
libraries=$work/cuda
run --vdev gpu_millrace0,device=0000:3b:00.0 || fail "without GDRCopy: exit status $?"
[ "$(grep -c 'TEST: PASSED' "$work/out")" = 4 ] || fail "without GDRCopy: not four parts PASSED"
grep -q 'GDRCopy: libgdrapi.so.2' "$work/out" || fail "without GDRCopy: no sentence says so"
export MILLRACE_STANDIN="version=12080 device=0000:3b:00.0"
if run --vdev gpu_millrace0,device=0000:3b:00.0; then
	fail "an old driver was accepted"
fi
grep -q 'supports CUDA 12.8, but the kernels need 13.0' "$work/out" || fail "no sentence on an old driver"
libraries=$work
if run --vdev gpu_millrace0,device=0000:3b:00.0; then
	fail "a driver that is not there was accepted"
fi
grep -q 'no NVIDIA driver' "$work/out" || fail "no sentence on a missing driver"

[ "$failures" = 0 ] || exit 1
echo "dpdk-test-gpudev passes over the plug-in"
