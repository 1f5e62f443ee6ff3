#!/usr/bin/env bash
# Runs golangci-lint, with the given arguments, at the version below: the one installed, when it is that version,
# or else one that is built into bin/tools, which takes some minutes once.
set -euo pipefail

version=v2.15.0
root=$(cd "$(dirname "$0")/.." && pwd)

has_version() {
	[ -x "$1" ] && [[ $("$1" version 2>/dev/null) == *"version ${version#v} "* ]]
}

for linter in "$(command -v golangci-lint || true)" "$(go env GOPATH)/bin/golangci-lint" "$root/bin/tools/golangci-lint"; do
	if has_version "$linter"; then
		exec "$linter" "$@"
	fi
done

echo "building golangci-lint $version" >&2
GOBIN="$root/bin/tools" go install "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version"
exec "$root/bin/tools/golangci-lint" "$@"
