#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
#     planted.sh FUZZER ARGUMENT...
#
# Passes only if the fuzzer finds the out-of-bounds write planted in its build. Any
# other end, of its own accord or by another fault, is a failure.
set -u
kinds='(use-after-poison|(heap|stack|global)-buffer-overflow)'
log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1
status=$?
if [ "$status" != 0 ] && grep -qE "AddressSanitizer: $kinds" "$log" && grep -q '^WRITE of size' "$log"; then
	grep -E "AddressSanitizer: $kinds|^WRITE|Test unit written" "$log"
	exit 0
fi
tail -n 20 "$log"
echo "planted.sh: the planted write was not found (status $status)"
exit 1
