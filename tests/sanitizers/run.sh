#!/usr/bin/env bash
# run.sh asan|tsan FOLDER COMMAND...
#
# Runs a command of an interpreter that is not instrumented, with the sanitizer of an extension that
# is loaded first. Fails if the command does, or if it or any child has reported something. Reports
# go to FOLDER/report.PID: pytest swallows what a test writes, and tests look at what children write.
set -euo pipefail
name=$1 folder=$(realpath "$2")
shift 2
rm -f "$folder"/report.*

library() { "${CXX:-c++}" -print-file-name="lib$1.so"; }
case $name in
  asan)
    # libstdc++ too: its functions that throw are found only if they are there when asan is loaded
    preload="$(library asan) $(library ubsan) $(library stdc++)"
    # No search for leaks: CPython, NumPy and PyTorch keep much on purpose. Too large an allocation
    # is a MemoryError, as without asan; its own address space cannot be bounded, so tests do not
    # (tests/fuzz/children.py).
    export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=3072:log_path=$folder/report"
    export UBSAN_OPTIONS="print_stacktrace=1:log_path=$folder/report"
    ;;
  tsan)
    preload=$(library tsan)
    suppressions=$(dirname "$(realpath "$0")")/tsan.supp
    export TSAN_OPTIONS="halt_on_error=1 suppressions=$suppressions log_path=$folder/report"
    ;;
esac

# what a task reads of mjData without having declared it is NaN
export PYFASTENV_POISON=1

status=0
env LD_PRELOAD="$preload" "$@" || status=$?
for report in "$folder"/report.*; do
  [ -e "$report" ] || continue
  printf '\n%s:\n' "$report"
  head -n 100 "$report"
  status=1
done
exit $status
