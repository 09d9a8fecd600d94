#!/bin/sh
# once.sh NAME FILE… -- COMMAND: runs a command unless it has passed with the same files (directories
# with all that git would commit of them). For tests of the modules below tools/, which read files
# outside of their module: the go command does not see those.
set -eu
name=$1
shift
files=""
while [ "$1" != -- ]; do files="$files $1"; shift; done
shift
passed=${CNI_TEST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/cnictl}/passed
# shellcheck disable=SC2086 # names without spaces
hash=$({ go version; echo "$*"; git ls-files -co --exclude-standard -- $files | sort -u |
	while read -r f; do if [ -f "$f" ]; then sha256sum "$f"; fi; done; } | sha256sum | cut -d' ' -f1)
if [ -e "$passed/$name-$hash" ]; then
	echo "$name: passed before with the same files"
	exit 0
fi
"$@"
mkdir -p "$passed"
: >"$passed/$name-$hash"
