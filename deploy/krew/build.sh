#!/bin/sh
# Builds the archives of the krew plugin and its manifest, filled in:
#   VERSION=v1.2.3 BASE=https://… deploy/krew/build.sh OUT [OS_ARCH…]
# The same sources make the same bytes.
set -eu
out=$1
shift
[ $# -gt 0 ] || set -- linux_amd64 linux_arm64 darwin_amd64 darwin_arm64
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
: "${VERSION:?a version such as v1.2.3}" "${BASE:?where the releases are, such as https://host/project}"
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root/LICENSE" "$work/LICENSE"
sed -e '/^#/d' -e "s|VERSION|$VERSION|g" -e "s|BASE|$BASE|g" "$here/aws-cni.yaml" >"$out/aws-cni.yaml"
for platform; do
	(cd "$root" && CGO_ENABLED=0 GOOS=${platform%_*} GOARCH=${platform#*_} "${GO:-go}" build -trimpath -tags grpcnotrace \
		-ldflags "-s -w -X main.version=$VERSION" -o "$work/kubectl-aws_cni" ./cmd/cnictl)
	archive=$out/aws-cni_$platform.tar.gz
	tar -C "$work" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=755 -cf - LICENSE kubectl-aws_cni | gzip -n9 >"$archive"
	sum=$(sha256sum "$archive" | cut -d' ' -f1)
	sed -i "s|SHA256_$platform|$sum|" "$out/aws-cni.yaml"
done
