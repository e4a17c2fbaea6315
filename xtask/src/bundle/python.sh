#!/bin/sh
# The tests of the Python package: of its operators where there is PyTorch, of the library alone where there is not, which
# PTQ_REQUIRE_GPU=1 makes a failure. run.sh sets PTQ_BUNDLE and starts this in a folder that may be written to.
set -eu

if ! command -v python3 >/dev/null; then
    echo "skipped: there is no python3"
    case "${PTQ_REQUIRE_GPU-}" in
    '' | 0) exit 0 ;;
    *) exit 1 ;;
    esac
fi
gunzip -c "$PTQ_BUNDLE/lib/libptq_fp8.so.gz" >libptq_fp8.so
export PTQ_LIB="$PWD/libptq_fp8.so" PTQ_TEST_DATA="$PTQ_BUNDLE/data"
# The bundle may be read-only.
python3 -B "$PTQ_BUNDLE/python/tests"
