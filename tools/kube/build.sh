#!/bin/bash
# Puts the programs that testenv/kube/kubeapi and testenv/kube/cluster run into a cache outside of the
# checkout, once per version of Kubernetes and Go and per platform, and prints the directory:
# Kubernetes programs, built from the module beside this file, and etcd and containerd, unpacked
# from Debian packages. Those packages are not installed, because they would start a service.
#
#   tools/kube/build.sh [PROGRAM...]        default: etcd kube-apiserver
#   tools/kube/build.sh cluster             all that a cluster of testenv/kube/cluster runs
#   tools/kube/build.sh -n                  only print the directory
#
# CNI_TEST_CACHE moves the cache. Builds that race wait for each other, and a program
# appears under its name only when it is whole.
set -euo pipefail
cd "$(dirname "$0")"
go=${GO:-go}

export CGO_ENABLED=0 GOFLAGS=-trimpath GOWORK=off
version=$(awk '$1 == "k8s.io/kubernetes" { print $2 } $2 == "k8s.io/kubernetes" { print $3 }' go.mod)
cache=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or CNI_TEST_CACHE}/.cache}/cnictl}
dir=$cache/kube-$version-$($go env GOVERSION)-$($go env GOARCH)

if [ "${1-}" = -n ]; then
	echo "$dir"
	exit
fi
[ $# -gt 0 ] || set -- etcd kube-apiserver
[ "$*" != cluster ] || set -- etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl \
	containerd containerd-shim-runc-v2 ctr

say() { echo "$@" >&2; }

# Without the version a server says that it is v0.0.0, which clients take for too old. All in one run, so
# that one program is linked while another is compiled.
from_module() {
	local minor=${version#v1.} flags="-s -w" p
	for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags+=" -X $p.gitVersion=$version -X $p.gitMajor=1 -X $p.gitMinor=${minor%%.*} -X $p.gitTreeState=clean"
	done
	say "building $* $version into $dir (4 to 10 minutes, once)"
	$go build -ldflags "$flags" -o "$scratch/" "${@/#/k8s.io/kubernetes/cmd/}"
}

# from_debian PACKAGE VERSION PROGRAM FILE. Needs no root, but lists of packages; only
# root can get those.
from_debian() {
	local package=$1 atleast=$2 found
	shift 2
	if found=$(command -v "$1"); then
		cp "$found" "$2"
		return
	fi
	say "unpacking $1 of Debian's package $package into $dir"
	mkdir "$scratch/deb"
	(
		cd "$scratch/deb"
		fetch() { apt-get -o APT::Sandbox::User=root download -qq "$package"; }
		if ! fetch 2>/dev/null; then
			[ "$(id -u)" -ne 0 ] || apt-get update -qq
			fetch || { say "no $1: put version $atleast or later into the PATH, or run:  sudo apt-get update"; exit 1; }
		fi
		dpkg-deb -x ./*.deb .
	)
	mv "$scratch/deb/usr/bin/$1" "$2"
}

# missing NAME...: sets lacking to those that are not there.
missing() {
	local name
	lacking=()
	for name; do [ -x "$dir/$name" ] || lacking+=("$name"); done
	[ ${#lacking[@]} -gt 0 ]
}

if missing "$@"; then
	mkdir -p "$dir"
	exec 9>"$dir/.lock" # the lock ends with this process
	flock -n 9 || { say "waiting for somebody else who makes some of: ${lacking[*]}"; flock 9; }
fi
if missing "$@"; then
	rm -rf "$dir"/.made.?????? # of one that was killed
	scratch=$(mktemp -d "$dir/.made.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	modules=()
	for name in "${lacking[@]}"; do
		case $name in
		etcd) from_debian etcd-server 3.4 "$name" "$scratch/$name" ;;
		containerd | containerd-shim-runc-v2 | ctr) from_debian containerd 1.6 "$name" "$scratch/$name" ;;
		*) modules+=("$name") ;;
		esac
		rm -rf "$scratch/deb"
	done
	[ ${#modules[@]} -eq 0 ] || from_module "${modules[@]}"
	for name in "${lacking[@]}"; do mv "$scratch/$name" "$dir/$name"; done
	say "${lacking[*]}: there after ${SECONDS}s"
fi
echo "$dir"
