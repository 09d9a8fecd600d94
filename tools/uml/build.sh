#!/bin/bash
# Gets what testenv/uml boots into a cache outside of the checkout, once, and prints the
# directory: user-mode Linux with its modules, and the program that loads them, taken out
# of Debian's packages. Nothing is installed, and no root is needed but to refresh apt's
# lists of packages.
#
#   tools/uml/build.sh          get it
#   tools/uml/build.sh -n       only print the directory
#
# CNI_TEST_CACHE moves the cache. The directory appears only when it is whole.
set -euo pipefail

cache=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or CNI_TEST_CACHE}/.cache}/cnictl}
dir=$cache/uml-1

if [ "${1-}" = -n ]; then
	echo "$dir"
	exit
fi

say() { echo "$@" >&2; }

fetch() { apt-get -o APT::Sandbox::User=root download -qq "$@"; }

if [ ! -e "$dir/linux.uml" ]; then
	if [ "$(uname -m)" != x86_64 ]; then
		say "user-mode Linux is for x86_64 only: tests that need what this kernel lacks are skipped"
		exit
	fi
	mkdir -p "$cache"
	exec 9>"$cache/.uml.lock" # the lock ends with this process
	flock -n 9 || { say "waiting for somebody else who gets user-mode Linux"; flock 9; }
fi
if [ ! -e "$dir/linux.uml" ]; then
	rm -rf "$cache"/.uml.?????? # of one that was killed
	scratch=$(mktemp -d "$cache/.uml.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	say "unpacking Debian's package user-mode-linux into $dir"
	mkdir "$scratch/deb" "$scratch/made"
	(
		cd "$scratch/deb"
		if ! fetch user-mode-linux kmod 2>/dev/null; then
			[ "$(id -u)" -ne 0 ] || apt-get update -qq
			fetch user-mode-linux kmod || { say "no user-mode-linux; run:  sudo apt-get update"; exit 1; }
		fi
		for package in ./*.deb; do dpkg-deb -x "$package" .; done
	)
	cd "$scratch/made"
	mv "$scratch/deb/usr/bin/linux.uml" .
	mkdir lib
	mv "$scratch/deb/usr/lib/uml/modules" lib/modules
	if [ -x "$scratch/deb/bin/kmod" ]; then
		mv "$scratch/deb/bin/kmod" modprobe
	else
		mv "$scratch/deb/usr/bin/kmod" modprobe
	fi
	./modprobe --version >/dev/null # it does what its name says, and finds its libraries
	# The kernel's helper gets no arguments of ours.
	printf '#!/bin/sh\nexec "${0%%/*}/modprobe" -d "${0%%/*}" "$@"\n' >load-module
	chmod +x load-module
	cd "$cache"
	rm -rf "$dir"
	mv "$scratch/made" "$dir"
fi
echo "$dir"
