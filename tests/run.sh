#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs what is missing, builds, and runs the tests.
#
#     sh tests/run.sh [--quick] [--sanitize[=unit]] [--fuzz] [--campaign] [--guest] [-Doption=value ...]
#
#     --quick      suites lint and unit only
#     --sanitize   in addition a build with AddressSanitizer and UBSan and one with
#                  ThreadSanitizer, each running the suites unit and e2e, or unit alone
#     --fuzz       in addition a build with clang that runs the suite fuzz
#     --campaign   the suite campaign too: hundreds of injected faults, and signals at
#                  every step of bring-up; takes long
#     --guest      the suite guest too: the service in a Debian with systemd, under QEMU's
#                  emulation; it takes minutes, and debootstrap packages from Debian's mirror
#     -D...        handed to meson setup of every build
#
# Builds lie in ./b, or in the folder that MILLRACE_BUILD names; sanitizer builds beside
# it with -asan, -tsan and -fuzz behind the name. The last line is always "N passed, N failed,
# N skipped"; a test that timed out, a build that failed and a suite that took far longer than
# its budget (tests/meson.build) count as failed, and the end of what they said stands before
# that line. Exit status 0 only if none failed and some passed.
set -u

# The system's own tools first: a python from elsewhere lacks the Debian modules.
PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH
export PATH

source=$(cd "$(dirname "$0")/.." && pwd)
build=${MILLRACE_BUILD:-$source/b}
quick=no
sanitize=no
fuzz=no
campaign=--no-suite=campaign
guest=--no-suite=guest
options=
passed=0
failed=0
skipped=0
failures=

for argument in "$@"; do
	case $argument in
	--quick) quick=yes ;;
	--sanitize) sanitize="--suite unit --suite e2e" ;;
	--sanitize=unit) sanitize="--suite unit" ;;
	--fuzz) fuzz=yes ;;
	--campaign) campaign= ;;
	--guest) guest= ;;
	-D*) options="$options $argument" ;;
	*)
		echo "usage: tests/run.sh [--quick] [--sanitize[=unit]] [--fuzz] [--campaign] [--guest] [-Doption=value ...]" >&2
		exit 2
		;;
	esac
done

finish() {
	printf '%s' "$failures"
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
	exit
}

count_failed() {
	failures="${failures}failed: $1
"
	failed=$((failed + 1))
}

# compile FOLDER OPTION...: a build folder with all that is built by default. What a suite
# needs beside that the test runner builds.
compile() {
	folder=$1
	shift
	if [ ! -e "$folder/build.ninja" ]; then
		meson setup "$folder" "$source" "$@"
	elif [ $# != 0 ]; then
		meson configure "$folder" "$@"
	fi || return
	# Single suites need little of the tree, which the test runner builds.
	[ "$name" != plain ] || ninja -C "$folder"
}

# run_build NAME FOLDER SUITES OPTION...: compile, test, add to the counts. $launcher
# stands before the test runner.
run_build() {
	name=$1
	folder=$2
	suites=$3
	shift 3
	echo "run.sh: $name build in $folder"
	# shellcheck disable=SC2086 # lists of words
	if ! compile "$folder" "$@" $options; then
		count_failed "the $name build failed"
		return
	fi
	# shellcheck disable=SC2086 # lists of words
	if ! /usr/bin/python3 "$source/tests/summary.py" "$name" "$folder" \
		$launcher meson test $suites; then
		count_failed "the $name build failed, or its tests left no log"
		return
	fi
	failures=$failures$(cat "$folder/meson-logs/failures" && echo .)
	failures=${failures%.}
	# shellcheck disable=SC2046 # three numbers
	set -- $(cat "$folder/meson-logs/counts")
	passed=$((passed + $1))
	failed=$((failed + $2))
	skipped=$((skipped + $3))
}

# works OPTION...: does a program built with the sanitizer run here?
works() {
	scratch=$(mktemp -d) || return 1
	echo 'int main(void) { return 0; }' >"$scratch/t.c"
	# shellcheck disable=SC2086 # may be empty
	gcc "$@" -o "$scratch/t" "$scratch/t.c" && $launcher "$scratch/t" >/dev/null 2>&1
	status=$?
	rm -rf "$scratch"
	return $status
}

sanitized() {
	ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
	# A container may forbid the tracing that the leak check needs.
	launcher=
	export ASAN_OPTIONS
	works -fsanitize=address || ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1
	LSAN_OPTIONS=print_suppressions=0
	[ ! -e "$source/tests/lsan.supp" ] ||
		LSAN_OPTIONS=$LSAN_OPTIONS:suppressions=$source/tests/lsan.supp
	[ ! -e "$source/tests/tsan.supp" ] ||
		TSAN_OPTIONS=$TSAN_OPTIONS:suppressions=$source/tests/tsan.supp
	export ASAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS LSAN_OPTIONS

	run_build "address sanitizer" "$build-asan" "$sanitize" \
		-Db_sanitize=address,undefined -Dcuda=disabled

	# ThreadSanitizer of gcc 12 does not start where the kernel spreads addresses wide.
	launcher=
	works -fsanitize=thread || launcher="setarch $(uname -m) -R"
	if works -fsanitize=thread; then
		launcher="sh $source/tests/few_drivers.sh $launcher"
		run_build "thread sanitizer" "$build-tsan" "$sanitize" \
			-Db_sanitize=thread -Dcuda=disabled
	else
		echo "run.sh: ThreadSanitizer does not start on this machine: its build is skipped" >&2
		skipped=$((skipped + 1))
	fi
}

# libFuzzer is clang's. A found input is printed, so that a log is enough to repeat it.
fuzzed() {
	launcher=
	CC=clang
	export CC
	run_build fuzz "$build-fuzz" "--suite fuzz --print-errorlogs" -Dcuda=disabled
	for found in "$build-fuzz"/tests/fuzz/found_*/crash-* "$build-fuzz"/tests/fuzz/found_*/timeout-* \
		"$build-fuzz"/tests/fuzz/found_*/oom-* "$build-fuzz"/tests/fuzz/found_*/leak-*; do
		[ -e "$found" ] || continue
		echo "run.sh: $found" >&2
		base64 "$found" >&2
	done
}

if ! sh "$source/deploy/packages.sh" build test; then
	count_failed "packages are missing"
	finish
fi

launcher=
if [ "$quick" = yes ]; then
	run_build plain "$build" "--suite lint --suite unit"
else
	run_build plain "$build" "$campaign $guest"
fi
[ "$sanitize" = no ] || sanitized
[ "$fuzz" = no ] || fuzzed
finish
