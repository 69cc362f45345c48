#!/usr/bin/env bash
# Runs the tests with pytest's arguments. The suite starts hundreds of processes and kills many: a few tests that fail
# are run once more by themselves. What fails again fails the run; what passes then is named, and wants mending.
set -uo pipefail
cd "$(dirname "$0")/.."
PY=.venv/bin/python
CACHE=build/test-cache # of this run alone
FEW=3

rm -rf "$CACHE"
$PY -m pytest -o cache_dir="$CACHE" "$@"
status=$?
failed=$($PY -c 'import json, pathlib, sys
path = pathlib.Path(sys.argv[1], "v/cache/lastfailed")
print(*(json.loads(path.read_text()) if path.exists() else ()), sep="\n")' "$CACHE")
if ((status != 1)) || [[ -z $failed ]] || (($(wc -l <<<"$failed") > FEW)); then
    exit "$status"
fi

echo "test: run once more by themselves:"
echo "$failed"
$PY -m pytest -o cache_dir="$CACHE" "$@" --last-failed --last-failed-no-failures=none
status=$?
((status == 0)) && echo "test: those passed now: they are not reliable, and want mending"
exit "$status"
