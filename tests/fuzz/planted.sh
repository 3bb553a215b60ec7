#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
#     planted.sh FUZZER ARGUMENT...
#
# Passes only if the fuzzer finds the out-of-bounds access planted in its build. Any
# other end, of its own accord or by another fault, is a failure.
set -u
log=$(mktemp) || exit 99
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1
status=$?
if [ "$status" != 0 ] && grep -q 'AddressSanitizer: use-after-poison' "$log"; then
	grep -E 'use-after-poison|Test unit written' "$log"
	exit 0
fi
tail -n 20 "$log"
echo "planted.sh: the planted access was not found (status $status)"
exit 1
