#!/bin/sh
# The engine tests with address and undefined-behaviour sanitizers, in a build of their own.
set -eu
cd "$(dirname "$0")/.."
here=$(pwd)
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT INT TERM
cp -r pyproject.toml README.md LICENSE _fastpath.pyx pktgen_cli tests "$build/"
cd "$build"
rm -f pktgen_cli/*.so
CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1 -g" \
	LDFLAGS="-fsanitize=address,undefined" "$here/.venv/bin/python" -c \
	"from setuptools import setup; setup()" -q build_ext --inplace
ldd pktgen_cli/_fastpath*.so | grep -q libasan
echo "built with sanitizers in $build"
LD_PRELOAD="$(cc -print-file-name=libasan.so) $(cc -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 PYTHONMALLOC=malloc MALLOC_PERTURB_=165 \
	PYTHONPATH="$build" "$here/.venv/bin/python" -m pytest -p no:cacheprovider \
	tests/test_program.py tests/test_tx.py tests/test_schedule.py "$@"
