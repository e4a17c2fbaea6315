#!/bin/sh
# run.sh [--bench] [--only NAME] [ARGUMENT...]
#
# Runs every test of this bundle, or with --bench every benchmark; with --only those whose name fits NAME, a pattern of
# the shell. Arguments go to each executable. Works from any folder; the bundle itself may be read-only; executables are
# unpacked in TMPDIR. Exits 1 if any executable fails, 2 on wrong use.
#
# Environment: PTQ_REQUIRE_GPU=1 makes a missing device fail; PTQ_TARGET and PTQ_ARTIFACTS choose the GPU code;
# CRITERION_HOME keeps the benchmarks' reports.
set -eu

folder=tests
only='*'
while :; do
    case "${1-}" in
    --bench)
        folder=benches
        shift
        ;;
    --only)
        [ $# -ge 2 ] || { echo "--only needs a name" >&2 && exit 2; }
        only=$2
        shift 2
        ;;
    --help)
        sed -n '1d; /^set/q; s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *) break ;;
    esac
done
# Criterion measures only when it is told to.
[ "$folder" = tests ] || set -- --bench "$@"

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
# $only is a pattern, so it stands outside the quotes.
for packed in "$here/$folder/"$only.gz; do
    [ -f "$packed" ] || { echo "no executable in $here/$folder fits '$only'" >&2 && exit 2; }
    name=$(basename "$packed" .gz)
    printf '\n== %s\n' "$name"
    # Each under its own name: a file that ran a moment ago may still be busy.
    gunzip -c "$packed" >"$name"
    chmod +x "$name"
    begin=$(date +%s)
    # POSIX has no pipefail: the status goes through a file.
    {
        status=0
        "./$name" "$@" || status=$?
        echo "$status" >status
    } 2>&1 | tee log
    rm -f "$name"
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
