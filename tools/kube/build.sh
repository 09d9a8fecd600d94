#!/bin/bash
# Builds Kubernetes programs (all that tests run of it: kube-apiserver) from the
# module beside this file, once for each version of Kubernetes, of Go and of the
# platform, into a cache outside of the checkout, and prints the directory.
#
#   tools/kube/build.sh [PROGRAM...]        default: kube-apiserver
#   tools/kube/build.sh -n                  only print the directory
#
# CNI_TEST_CACHE moves the cache. Builds that race wait for each other, and a
# program appears under its name only when it is whole.
set -euo pipefail
cd "$(dirname "$0")"
go=${GO:-go}

export CGO_ENABLED=0 GOFLAGS=-trimpath GOWORK=off
version=$(awk '$1 == "require" && $2 == "k8s.io/kubernetes" { print $3 } $1 == "k8s.io/kubernetes" { print $2 }' go.mod)
cache=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-${HOME:?set HOME or CNI_TEST_CACHE}/.cache}/cnictl}
dir=$cache/kube-$version-$($go env GOVERSION)-$($go env GOARCH)

if [ "${1-}" = -n ]; then
	echo "$dir"
	exit
fi
[ $# -gt 0 ] || set -- kube-apiserver

# Without these a server says that it is v0.0.0, which clients take for too old.
minor=${version#v1.}
set_version=
for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
	set_version+=" -X $p.gitVersion=$version -X $p.gitMajor=1 -X $p.gitMinor=${minor%%.*} -X $p.gitTreeState=clean"
done

build() {
	local name=$1 started=$SECONDS
	[ ! -x "$dir/$name" ] || return 0
	mkdir -p "$dir"
	# A lock file for each program; the lock ends with this process.
	exec 9>"$dir/.$name.lock"
	flock -n 9 || { echo "waiting for another build of $name" >&2; flock 9; }
	[ ! -x "$dir/$name" ] || return 0
	echo "building $name $version into $dir (some minutes, once)" >&2
	$go build -ldflags "-s -w$set_version" -o "$dir/.$name.$$" "k8s.io/kubernetes/cmd/$name"
	mv -f "$dir/.$name.$$" "$dir/$name"
	echo "built $name in $((SECONDS - started))s" >&2
}

trap 'rm -f "$dir"/.*.$$' EXIT
for name; do
	build "$name"
done
echo "$dir"
