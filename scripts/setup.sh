#!/usr/bin/env bash
# Usage: setup.sh PROGRAM...
# Installs each named program that this machine lacks. On Debian and its kin as root it does so itself; elsewhere it
# says what to install, and fails.
set -euo pipefail

policy=/usr/sbin/policy-rc.d

# debian_package prints the Debian packages that a program comes with.
debian_package() {
	case $1 in
	make | redis-server | wrk | chromium) echo "$1" ;;
	cc) echo "gcc libc6-dev" ;; # the race detector is linked by a C compiler
	promtool) echo prometheus ;;
	*) echo "setup: no package known for $1" >&2 && return 1 ;;
	esac
}

can_install() {
	[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null
}

# apt_install installs packages without starting the service that they may hold: the tests start their own
# servers, and a daemon on the usual port is not ours to add to a machine.
apt_install() {
	if [ ! -e "$policy" ]; then
		trap 'rm -f "$policy"' EXIT
		printf '#!/bin/sh\nexit 101\n' >"$policy"
		chmod +x "$policy"
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=120 "$@"
	case $1 in
	redis-server | prometheus)
		if [ -d /run/systemd/system ]; then
			systemctl disable --now "$1" # or it would start with the machine
		elif command -v update-rc.d >/dev/null; then
			update-rc.d "$1" disable
		fi
		;;
	esac
}

need() {
	command -v "$1" >/dev/null && return
	local package
	package=$(debian_package "$1")
	if ! can_install; then
		echo "setup: $1 is missing. Install it (on Debian, as root: apt-get install $package) and run this again." >&2
		exit 1
	fi
	echo "setup: installing $package"
	# shellcheck disable=SC2086 # several packages are several words
	apt_install $package </dev/null
}

for program in "$@"; do
	need "$program"
done
