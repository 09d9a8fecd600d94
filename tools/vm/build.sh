#!/bin/bash
# Gets what testenv/network/vm boots into a cache outside of the checkout, once, and prints the
# directory: QEMU, a kernel with its modules, and the program that loads them, all unpacked
# from Debian's packages. Nothing is installed; root is needed only to refresh apt's package
# lists.
#
#   tools/vm/build.sh          get it
#   tools/vm/build.sh -n       only print the directory
#
# CNI_TEST_CACHE moves the cache. The directory appears only when it is complete.
set -euo pipefail

cache=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or CNI_TEST_CACHE}/.cache}/cnictl}
dir=$cache/vm-1

if [ "${1-}" = -n ]; then
	echo "$dir"
	exit
fi

say() { echo "$@" >&2; }

# packages prints what to download: QEMU, the libraries it needs that this machine lacks,
# the kernel, and the programs that prepare it. The C library is always this machine's.
packages() {
	local libraries kernel
	libraries=$(apt-get install --print-uris -qq --no-install-recommends qemu-system-x86 |
		awk '{ sub(/_.*/, "", $2); print $2 }' | grep -vE '^(libc6|libc-bin|libgcc-s1|libstdc\+\+6)$' || true)
	kernel=$(apt-cache depends --important linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
	[ -n "$kernel" ] || return 1
	printf '%s\n' $libraries qemu-system-x86 qemu-system-common qemu-system-data seabios kmod xz-utils "$kernel" | sort -u
}

download() {
	local names
	names=$(packages) || return 1
	apt-get -o APT::Sandbox::User=root download -qq $names
}

if [ ! -e "$dir/vmlinux" ]; then
	if [ "$(uname -m)" != x86_64 ]; then
		say "the virtual machine is for x86_64 only: tests that need what this kernel lacks are skipped"
		exit
	fi
	mkdir -p "$cache"
	exec 9>"$cache/.vm.lock" # the lock ends with this process
	flock -n 9 || { say "waiting for another process that gets the virtual machine"; flock 9; }
fi
if [ ! -e "$dir/vmlinux" ]; then
	rm -rf "$cache"/.vm.?????? # of one that was killed
	scratch=$(mktemp -d "$cache/.vm.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	say "unpacking QEMU and a kernel from Debian's packages into $dir"
	mkdir "$scratch/deb" "$scratch/root" "$scratch/kernel" "$scratch/made"
	(
		cd "$scratch/deb"
		if ! download 2>/dev/null; then
			[ "$(id -u)" -ne 0 ] || apt-get update -qq
			download || { say "cannot download qemu-system-x86 and linux-image-amd64; run:  sudo apt-get update"; exit 1; }
		fi
		for package in ./*.deb; do
			case $package in
			./linux-image-*) dpkg-deb -x "$package" "$scratch/kernel" ;;
			*) dpkg-deb -x "$package" "$scratch/root" ;;
			esac
		done
	)
	cd "$scratch/made"
	root=$scratch/root kernel=$scratch/kernel
	[ ! -d "$root/lib" ] || cp -a "$root/lib/." "$root/usr/lib/"
	program() { find "$root/bin" "$root/usr/bin" -name "$1" 2>/dev/null | head -n 1; }

	# QEMU with its libraries and firmware, and nothing that is for other architectures.
	mkdir -p qemu/lib qemu/modules qemu/share
	cp "$(program qemu-system-x86_64)" qemu/
	find "$root/usr/lib/x86_64-linux-gnu" -name '*.so*' ! -path '*/qemu/*' -exec cp -a {} qemu/lib/ \;
	cp "$root"/usr/lib/x86_64-linux-gnu/qemu/accel-tcg-x86_64.so qemu/modules/
	cp -L "$root"/usr/share/qemu/{pvh.bin,linuxboot_dma.bin,kvmvapic.bin} "$root/usr/share/seabios/bios-256k.bin" qemu/share/
	cat >qemu-system-x86_64 <<-'SCRIPT'
		#!/bin/sh
		dir=${0%/*}/qemu
		export LD_LIBRARY_PATH="$dir/lib" QEMU_MODULE_DIR="$dir/modules"
		exec "$dir/qemu-system-x86_64" -L "$dir/share" "$@"
	SCRIPT
	chmod +x qemu-system-x86_64
	./qemu-system-x86_64 --version >/dev/null # it finds its libraries

	# The kernel as an ELF file: to decompress it is most of the work of an emulated boot.
	# Where the compressed part of a bzImage is: see the kernel's Documentation/arch/x86/boot.rst.
	image=$(find "$kernel/boot" -name 'vmlinuz-*')
	number() { od -An -tu"$2" -j"$1" -N"$2" "$image" | tr -d ' '; }
	payload=$(($(number 0x248 4) + ($(number 0x1f1 1) + 1) * 512))
	tail -c "+$((payload + 1))" "$image" | "$(program xz)" -dc >vmlinux 2>/dev/null || true # what follows the payload is not xz's
	[ "$(head -c 4 vmlinux | tail -c 3)" = ELF ] || { say "cannot decompress $image"; exit 1; }

	# The modules of networks and of what a virtual machine has.
	mkdir lib
	mv "$kernel"/lib/modules lib/
	version=$(ls lib/modules)
	modules=lib/modules/$version/kernel
	find "$modules" -mindepth 1 -maxdepth 1 ! -name arch ! -name crypto ! -name drivers ! -name fs ! -name lib ! -name net -exec rm -rf {} +
	find "$modules/fs" -mindepth 1 -maxdepth 1 ! -name 9p ! -name fscache ! -name netfs -exec rm -rf {} +
	find "$modules/drivers" -mindepth 1 -maxdepth 1 ! -name char ! -name net ! -name virtio -exec rm -rf {} +
	find "$modules/drivers/net" -mindepth 1 -maxdepth 1 -type d ! -name ipvlan ! -name vxlan -exec rm -rf {} +
	cp "$(program kmod)" modprobe
	ln -s modprobe depmod
	./depmod -b . "$version"
	rm depmod
	for module in virtio_pci 9p 9pnet_virtio virtio_console virtio_net; do
		./modprobe -d . -S "$version" --show-depends "$module"
	done | awk '{ sub(/.*\/lib\/modules/, "lib/modules"); if (!seen[$1]++) print $1 }' >boot-modules
	# The kernel's helper gets no arguments of ours.
	printf '#!/bin/sh\nexec "${0%%/*}/modprobe" -d "${0%%/*}" "$@"\n' >load-module
	chmod +x load-module
	cd "$cache"
	rm -rf "$dir"
	mv "$scratch/made" "$dir"
fi
echo "$dir"
