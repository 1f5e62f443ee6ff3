#!/usr/bin/env bash
# Usage: fuzz.sh TIME
# Runs each fuzz target of the module for TIME, such as 30s; stops at the first that finds a fault.
set -euo pipefail

# Within a package, go test -list prints the names first and then a line with the package.
targets=$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { names = names " " $1 } $1 == "ok" { n = split(names, name, " "); for (i = 1; i <= n; i++) print $2, name[i]; names = "" }')

while read -r package name; do
	[ -n "$name" ] || continue
	echo "== $name in $package"
	go test -run '^$' -fuzz "^$name\$" -fuzztime "$1" "$package" </dev/null
done <<<"$targets"
