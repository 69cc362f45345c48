#!/usr/bin/env bash
# Runs the tests with pytest's arguments: all of them as two runs beside each other, since most tests wait for servers
# more than they compute. What the second run prints is shown after the first one.
#
# The suite starts hundreds of processes and kills many: a few tests that fail are run once more by themselves. What
# fails again fails the run; what passes then is named, and wants mending.
set -uo pipefail
cd "$(dirname "$0")/.."
PY=.venv/bin/python
CACHE=build/test-cache # of each run its own
FEW=3
SECOND=(benchmarks cache cluster crash deploy events hudi readiness server store timeline unit visibility)

run() { # name, pytest's arguments …
    local cache=$CACHE-$1
    shift
    rm -rf "$cache"
    $PY -m pytest -o cache_dir="$cache" "$@"
}

failed() { # name
    $PY -c 'import json, pathlib, sys
path = pathlib.Path(sys.argv[1], "v/cache/lastfailed")
print(*(json.loads(path.read_text()) if path.exists() else ()), sep="\n")' "$CACHE-$1"
}

again() { # name, status, pytest's arguments …
    local name=$1 status=$2 some
    shift 2
    some=$(failed "$name")
    if ((status != 1)) || [[ -z $some ]] || (($(wc -l <<<"$some") > FEW)); then
        return "$status"
    fi
    echo "test: run once more by themselves:"
    echo "$some"
    $PY -m pytest -o cache_dir="$CACHE-$name" "$@" --last-failed --last-failed-no-failures=none
    status=$?
    ((status == 0)) && echo "test: those passed now: they are not reliable, and want mending"
    return "$status"
}

mkdir -p build
if (($# > 2)); then # more than which marks: a part of the suite
    run all "$@"
    again all $? "$@"
    exit
fi

log=build/test-second.log
echo "test: ${SECOND[*]} are tested beside the rest; $log tells how far they are"
trap 'kill $second 2>/dev/null' INT TERM
run second "$@" "${SECOND[@]/#/tests/}" >"$log" 2>&1 &
second=$!
run first "$@" "${SECOND[@]/#/--ignore=tests/}"
first_status=$?
wait $second
second_status=$?
cat "$log"
again second $second_status "$@" "${SECOND[@]/#/tests/}"
second_status=$?
again first $first_status "$@" "${SECOND[@]/#/--ignore=tests/}"
first_status=$?
((first_status == 0 && second_status == 0))
