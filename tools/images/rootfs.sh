#!/bin/bash
# Collects the third-party part of the image aws-vpc-cni in a cache outside of the checkout,
# and prints its directory: iptables in both modes, ip6tables and nft with their libraries,
# and the CA certificates for the AWS API. They are unpacked from Debian packages; nothing is
# installed.
#
#   tools/images/rootfs.sh
#
# CNI_TEST_CACHE moves the cache. Needs apt-get and dpkg-deb; root only if the lists of
# packages are not there yet.
set -euo pipefail
packages=(ca-certificates iptables libbsd0 libc6 libedit2 libgmp10 libip4tc2 libip6tc2 libjansson4
	libmd0 libmnl0 libnetfilter-conntrack3 libnfnetlink0 libnftables1 libnftnl11 libtinfo6 libxtables12 netbase nftables)

say() { echo "$@" >&2; }

command -v dpkg-deb >/dev/null && command -v apt-get >/dev/null ||
	{ say "the programs of the image are taken from Debian's packages: run this on Debian or Ubuntu, or build deploy/images with Docker"; exit 1; }
uris() { apt-get download --print-uris "${packages[@]}"; }
if ! found=$(uris 2>/dev/null); then
	[ "$(id -u)" -ne 0 ] || apt-get update -qq >&2
	found=$(uris) || { say "no lists of packages; run:  sudo apt-get update"; exit 1; }
fi
cache=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or CNI_TEST_CACHE}/.cache}/cnictl}
# One directory for each set of versions, and each version of this script.
key=$({ awk '{ print $2 }' <<<"$found" | sort; sha256sum <"${BASH_SOURCE[0]}"; } | sha256sum | cut -c1-16)
dir=$cache/rootfs-$key
if [ -d "$dir" ]; then
	echo "$dir"
	exit
fi

mkdir -p "$cache"
exec 9>"$cache/.rootfs.lock" # the lock ends with this process
flock 9
if [ ! -d "$dir" ]; then
	say "unpacking iptables, nft and certificates of Debian into $dir"
	rm -rf "$cache"/.rootfs.?????? # of one that was killed
	scratch=$(mktemp -d "$cache/.rootfs.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	mkdir "$scratch/deb" "$scratch/all" "$scratch/root"
	(cd "$scratch/deb" && apt-get -o APT::Sandbox::User=root download -qq "${packages[@]}" >&2)
	for deb in "$scratch"/deb/*.deb; do dpkg-deb -x "$deb" "$scratch/all"; done
	all=$scratch/all root=$scratch/root

	# The programs, under the names that Debian's alternatives would give them: nft first.
	mkdir -p "$root/usr/sbin" "$root/etc/ssl/certs"
	cp "$all"/usr/sbin/{xtables-nft-multi,xtables-legacy-multi,nft} "$root/usr/sbin/"
	for family in iptables ip6tables; do
		for part in "" -save -restore; do
			ln -s xtables-nft-multi "$root/usr/sbin/$family-nft$part"
			ln -s xtables-legacy-multi "$root/usr/sbin/$family-legacy$part"
			ln -s "$family-nft$part" "$root/usr/sbin/$family$part"
		done
	done
	# Libraries, the extensions of iptables and the loader; what libc has for people is not
	# needed.
	(
		cd "$all"
		find lib lib64 usr/lib \( -name '*.so' -o -name '*.so.*' \) ! -path '*/gconv/*' ! -path '*/audit/*' -print0 |
			tar --null -T - -cf - | tar -xf - -C "$root"
		cat $(find usr/share/ca-certificates -name '*.crt' | LC_ALL=C sort) >"$root/etc/ssl/certs/ca-certificates.crt"
		cp etc/protocols etc/services "$root/etc/"
		find usr/share/doc -name copyright -print0 | tar --null -T - -cf - | tar -xf - -C "$root"
	)
	for program in iptables-nft iptables-legacy ip6tables nft; do
		chroot "$root" "/usr/sbin/$program" --version >/dev/null 2>&1 || [ "$(id -u)" -ne 0 ] || { say "$program does not start with the libraries found"; exit 1; }
	done
	mv "$root" "$dir"
fi
echo "$dir"
