#!/bin/sh
# run.sh [--bench | --sanitize] [--only NAME] [ARGUMENT...]
#
# Runs every test of this bundle, or with --bench every benchmark; with --only those whose name fits NAME, a pattern of
# the shell. With --sanitize, the short form of the GPU's suite under each tool of compute-sanitizer, which must be on the
# PATH; a finding fails. Arguments go to each executable. Works from any folder; the bundle itself may be read-only;
# executables are unpacked in TMPDIR. Exits 1 if any executable fails, 2 on wrong use.
#
# Environment: PTQ_REQUIRE_GPU=1 makes a missing device fail; PTQ_TARGET and PTQ_ARTIFACTS choose the GPU code;
# PTQ_REFERENCE names the folder of the reference's cubins; PTQ_SHORT=1 runs the suite's short form alone; CRITERION_HOME
# keeps the benchmarks' reports. PTQ_RECORD names a file that does not exist yet, to which the one benchmark that --only
# names writes a record, with PTQ_COMMIT as the commit; PTQ_SWEEP=1 has compare_reference time every kernel entry.
set -eu

folder=tests
only=
# What the executables run under; `-`: nothing.
tools=-
while :; do
    case "${1-}" in
    --bench)
        folder=benches
        shift
        ;;
    --sanitize)
        tools='memcheck racecheck initcheck synccheck'
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
if [ "$tools" = - ]; then
    only=${only:-*}
    # Criterion measures only when it is told to.
    [ "$folder" = tests ] || set -- --bench "$@"
else
    [ "$folder" = tests ] || { echo "--bench and --sanitize exclude each other" >&2 && exit 2; }
    command -v compute-sanitizer >/dev/null || {
        echo "compute-sanitizer is not on the PATH; it is part of the CUDA toolkit" >&2
        exit 2
    }
    only=${only:-per_token_quant_fp8-gpu}
    # Without a device nothing is checked, and that must not pass.
    export PTQ_SHORT=1 PTQ_REQUIRE_GPU=1
    # Launches of one thread at a time are the easiest to find in a report.
    set -- --test-threads=1 "$@"
fi

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export PTQ_BUNDLE="$here"
export PTQ_BIN="$here/bin/quant-fp8"
export CRITERION_HOME="${CRITERION_HOME-$work/criterion}"
mkdir "$work/tmp"
export TMPDIR="$work/tmp"

# sanitize TOOL EXECUTABLE [ARGUMENT...]
sanitize() {
    tool=$1
    shift
    # Calls that the driver refuses are the program's own to handle, and part of what it tries.
    if [ "$tool" = memcheck ]; then set -- --report-api-errors no "$@"; fi
    compute-sanitizer --tool "$tool" --error-exitcode 9 "$@"
}

# It is the caller's path, not one in the folder where everything runs.
case "${PTQ_RECORD-}" in
'' | /*) ;;
*) export PTQ_RECORD="$PWD/$PTQ_RECORD" ;;
esac
cd "$work"
: >summary
failed=0
# $only is a pattern, so it stands outside the quotes.
for packed in "$here/$folder/"$only.gz; do
    [ -f "$packed" ] || { echo "no executable in $here/$folder fits '$only'" >&2 && exit 2; }
    name=$(basename "$packed" .gz)
    # Each under its own name: a file that ran a moment ago may still be busy.
    gunzip -c "$packed" >"$name"
    chmod +x "$name"
    for tool in $tools; do
        if [ "$tool" = - ]; then label=$name; else label="$tool $name"; fi
        printf '\n== %s\n' "$label"
        begin=$(date +%s)
        # POSIX has no pipefail: the status goes through a file.
        {
            status=0
            if [ "$tool" = - ]; then
                "./$name" "$@" || status=$?
            else
                sanitize "$tool" "./$name" "$@" || status=$?
            fi
            echo "$status" >status
        } 2>&1 | tee log
        seconds=$(($(date +%s) - begin))
        status=$(cat status)
        results=$(sed -n 's/^test result: [^.]*\. //p' log | sed 's/; finished in .*//' | paste -s -d '|' -)
        if [ "$tool" != - ]; then
            findings=$(sed -n 's/^=* [A-Z]* SUMMARY: //p' log | paste -s -d '|' -)
            results="$results; ${findings:-no word from the tool}"
            # Some findings are warnings, which do not change the exit status.
            case "$status $findings" in
            '0 0 '*) ;;
            0*) status=9 ;;
            esac
        fi
        if [ "$status" -eq 0 ]; then
            verdict=ok
        else
            verdict="FAILED (exit $status)"
            failed=$((failed + 1))
        fi
        printf '%s  %s  %s s  %s\n' "$verdict" "$label" "$seconds" "$results" >>summary
    done
    rm -f "$name"
done

printf '\n== summary\n'
cat summary
if [ "$failed" -gt 0 ]; then
    echo "$failed failed"
    exit 1
fi
