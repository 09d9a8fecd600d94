#!/bin/sh
# tool.sh FILE MODULE PACKAGE [FLAG…]: makes FILE a link to a program of a pinned module, which is
# built once per version of the module and Go, into the cache that all checkouts share: linking one
# takes a minute.
set -eu
file=$1 module=$2 package=$3
shift 3
go=${GO:-go}
key=$({ "$go" version; echo "$package $*"; cat "$module/go.mod" "$module/go.sum"; } | sha256sum | cut -c1-16)
built=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cnictl}/tools/$(basename "$file")-$key
if [ ! -x "$built" ]; then
	echo "building $(basename "$file") (a minute, once)"
	mkdir -p "$(dirname "$built")"
	"$go" -C "$module" build "$@" -o "$built.$$" "$package"
	mv "$built.$$" "$built" # whole when others see it
fi
mkdir -p "$(dirname "$file")"
ln -sfn "$built" "$file"
