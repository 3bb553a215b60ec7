#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# DPDK's own gpudev test over the plug-in: usage: test_gpudev.sh PLUGIN.so
# It prints PASSED or FAILED for each of its five parts and exits with 0 whatever
# they say, so the text is judged. 77: dpdk-test-gpudev is not installed.
set -eu

plugin=$(readlink -f "$1")
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

# By bare soname: EAL refuses a path below a world-writable folder such as /tmp. A
# name that exists in the working folder would be such a path, so that is another one.
run() {
	(cd "$work" && LD_LIBRARY_PATH="$(dirname "$plugin")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
		timeout 60 dpdk-test-gpudev --no-huge --no-pci --no-telemetry \
		--file-prefix "mr-gpudev-$$" -d "$(basename "$plugin")" "$@") >"$work/out" 2>&1
}

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

[ "$failures" = 0 ] || exit 1
echo "dpdk-test-gpudev passes over the plug-in"
