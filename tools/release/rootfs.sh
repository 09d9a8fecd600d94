#!/bin/bash
# Collects the third-party part of the images in a cache outside of the checkout, and prints
# its directory: iptables in both modes, ip6tables and nft with their libraries, and the CA
# certificates for the AWS API. They are unpacked from Debian packages; nothing is installed.
#
#   tools/release/rootfs.sh [ARCH]        amd64 or arm64, default: this machine's
#
# CNI_TEST_CACHE moves the cache. Needs apt-get and dpkg-deb, but no root: the lists of
# packages are in the cache, too, and are updated once a day if the archive can be reached.
# With FRESH=required they are updated now, and it is an error if they cannot be.
set -euo pipefail
packages=(ca-certificates iptables libbsd0 libc6 libedit2 libgmp10 libip4tc2 libip6tc2 libjansson4
	libmd0 libmnl0 libnetfilter-conntrack3 libnfnetlink0 libnftables1 libnftnl11 libtinfo6 libxtables12 netbase nftables)

say() { echo "$@" >&2; }

command -v dpkg-deb >/dev/null && command -v apt-get >/dev/null ||
	{ say "the programs of the image are taken from Debian's packages: run this on Debian or Ubuntu"; exit 1; }
native=$(dpkg --print-architecture)
arch=${1:-$native}
cache=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or CNI_TEST_CACHE}/.cache}/cnictl}
state=$cache/apt-$arch
mkdir -p "$state"/{lists/partial,archives/partial}
exec 9>"$cache/.rootfs-$arch.lock" # the lock ends with this process
flock 9

# apt for another architecture, without the machine's own state.
apt() {
	apt-get -qq -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User="$(id -un)" \
		-o Dir::State="$state" -o Dir::State::lists="$state/lists" -o Dir::State::status=/dev/null \
		-o Dir::Cache="$state" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o Acquire::Languages=none "$@"
}
uris() { apt download --print-uris "${packages[@]}" 2>/dev/null; }
if [ "${FRESH:-}" = required ] || [ -z "$(find "$state/updated" -mtime -1 2>/dev/null)" ]; then
	if apt -o APT::Update::Error-Mode=any update >&2; then # otherwise it succeeds with no source within reach
		touch "$state/updated"
	else
		say "the lists of packages could not be updated: newer packages are not found"
		[ "${FRESH:-}" != required ] || exit 1
	fi
fi
found=$(uris) || { say "no lists of packages for $arch: is Debian's archive within reach?"; exit 1; }
# One directory for each set of versions, and each version of this script.
key=$({ awk '{ print $2 }' <<<"$found" | sort; sha256sum <"${BASH_SOURCE[0]}"; } | sha256sum | cut -c1-16)
dir=$cache/rootfs-$arch-$key
if [ -d "$dir" ]; then
	echo "$dir"
	exit
fi

say "unpacking iptables, nft and certificates of Debian into $dir"
rm -rf "$cache/.rootfs-$arch".?????? # of one that was killed
scratch=$(mktemp -d "$cache/.rootfs-$arch.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/deb" "$scratch/all" "$scratch/root"
(cd "$scratch/deb" && apt download "${packages[@]}" >&2)
all=$scratch/all root=$scratch/root
mkdir -p "$root/usr/sbin" "$root/etc/ssl/certs" "$root/var/lib/dpkg/status.d"
for deb in "$scratch"/deb/*.deb; do
	dpkg-deb -x "$deb" "$all"
	# Where scanners of images look for packages when there is no dpkg.
	dpkg-deb -f "$deb" >"$root/var/lib/dpkg/status.d/$(dpkg-deb -f "$deb" Package)"
done

# The programs, under the names that Debian's alternatives would give them: nft first.
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
	find lib* usr/lib \( -name '*.so' -o -name '*.so.*' \) ! -path '*/gconv/*' ! -path '*/audit/*' -print0 |
		tar --null -T - -cf - | tar -xf - -C "$root"
	cat $(find usr/share/ca-certificates -name '*.crt' | LC_ALL=C sort) >"$root/etc/ssl/certs/ca-certificates.crt"
	cp etc/protocols etc/services "$root/etc/"
	find usr/share/doc -name copyright -print0 | tar --null -T - -cf - | tar -xf - -C "$root"
)
if [ "$(id -u)" -eq 0 ] && [ "$arch" = "$native" ]; then
	for program in iptables-nft iptables-legacy ip6tables nft; do
		chroot "$root" "/usr/sbin/$program" --version >/dev/null || { say "$program does not start with the libraries found"; exit 1; }
	done
fi
mv "$root" "$dir"
echo "$dir"
