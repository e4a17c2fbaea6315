#!/bin/sh
# Runs every test of this bundle, or with --bench every benchmark; further arguments go to each executable.
# Works from any folder; the bundle itself may be read-only. Exits 1 if any executable fails, 2 on wrong use.
#
# Environment: PTQ_REQUIRE_GPU=1 makes a missing device fail; PTQ_TARGET and PTQ_ARTIFACTS choose the artifacts;
# CRITERION_HOME keeps the benchmarks' reports.
set -eu

folder=tests
case "${1-}" in
--bench) folder=benches ;; # passed on: criterion measures only when told to
--help)
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export PTQ_BIN="$here/bin/quant-fp8"
export CRITERION_HOME="${CRITERION_HOME-$work/criterion}"
mkdir "$work/tmp"
export TMPDIR="$work/tmp"
cd "$work"

: >summary
failed=0
for executable in "$here/$folder"/*; do
    name=${executable##*/}
    printf '\n== %s\n' "$name"
    begin=$(date +%s)
    # POSIX has no pipefail: the status goes through a file.
    {
        status=0
        "$executable" "$@" || status=$?
        echo "$status" >status
    } 2>&1 | tee log
    seconds=$(($(date +%s) - begin))
    status=$(cat status)
    results=$(sed -n 's/^test result: [^.]*\. //p' log | sed 's/; finished in .*//' | paste -s -d '|' -)
    if [ "$status" -eq 0 ]; then
        verdict=ok
    else
        verdict="FAILED (exit $status)"
        failed=$((failed + 1))
    fi
    printf '%s  %s  %s s  %s\n' "$verdict" "$name" "$seconds" "$results" >>summary
done

printf '\n== summary\n'
cat summary
if [ "$failed" -gt 0 ]; then
    echo "$failed failed"
    exit 1
fi
