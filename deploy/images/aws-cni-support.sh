#!/bin/sh
# Collects the state of the CNI on this node into one archive. It is read-only. The project's
# docs/support-bundle.md describes the archive; its layout has a version, which is raised when
# something moves.
set -u
LAYOUT=1
NAME=aws-cni-support

usage() {
	cat <<END
usage: $NAME.sh [-o DIR] [-t SECONDS] [-i ADDRESS] [-r DIR]

Collects logs, the daemon's responses, and the node's network state and settings into
DIR/${NAME}_<instance id>_<time>.tar.gz, readable only by root, and prints its path.
Nothing on the node is changed. No credentials are read, and anything that looks like
one is removed from the text. Run it as root on the node.

  -o DIR      directory of the archive (default /var/log, below that of -r)
  -t SECONDS  time limit for each step (default 10)
  -i ADDRESS  address of the daemon's introspection, as in INTROSPECTION_BIND_ADDRESS:
              host:port or unix:/path (default 127.0.0.1:61679)
  -r DIR      root of the node's files (default /): /host in a container of
              "kubectl debug node", which must use the node's network
  -h          this help

Exit status: 0 the archive was written, even if some files could not be read (MANIFEST
lists them); 1 it could not be written; 2 wrong usage.
END
}

fail() {
	echo "$NAME.sh: $2" >&2
	exit "$1"
}

out='' limit=10 introspection=127.0.0.1:61679 root=''
while getopts o:t:i:r:h option; do
	case $option in
	o) out=$OPTARG ;;
	t) limit=$OPTARG ;;
	i) introspection=$OPTARG ;;
	r) root=${OPTARG%/} ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -eq 0 ] || fail 2 "unexpected argument $1; see -h"
case $limit in '' | 0* | *[!0-9]*) fail 2 "-t: $limit is not a number of seconds from 1" ;; esac

# The PATH of sudo or of a unit may lack these. No proxies: all addresses here belong to the
# node itself.
PATH=${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin:/usr/local/sbin:/usr/local/bin
LC_ALL=C
export PATH LC_ALL
unset http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY
umask 077

# have says whether a program is there.
have() { command -v "$1" >/dev/null 2>&1; }

for program in cat date gzip id ln ls mkdir mv rm sed tail tar; do
	have "$program" || fail 1 "the program $program is not there, without which nothing can be packed"
done
[ "$(id -u)" = 0 ] || fail 1 "run it as root: most of what it reads is root's alone"
out=${out:-$root/var/log}
[ -d "$out" ] || fail 1 "$out is not a directory; see -o"

# The largest part of a file or of an output that is kept: its end.
most=20000000

work=$out/.$NAME.$$
mkdir "$work" || fail 1 "make a directory in $out: it must be writable, and have space"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tree=$work/tree
mkdir "$tree"

# note adds a line about a file to the manifest.
note() { printf '%s\t%s\n' "$1" "$2" >>"$tree/MANIFEST"; }

# bounded runs a program for as long as a step may take.
if timeout 1 true 2>/dev/null; then
	bounded() { timeout "$limit" "$@"; }
else
	bounded() {
		{ "$@" <&3 & } 3<&0 # without it a program behind & reads nothing
		run=$!
		(
			sleep "$limit" &
			rest=$!
			trap 'kill $rest; exit' TERM
			wait $rest
			kill -KILL $run
		) >/dev/null 2>&1 &
		watch=$!
		wait $run
		code=$?
		kill $watch 2>/dev/null
		return $code
	}
fi

# scrub takes out what gives rights: keys and tokens of AWS, of Kubernetes and of the
# metadata service, signatures, passwords.
scrub() {
	tail -c "$most" | sed -E \
		-e "s/(authorization${q}[[:space:]]*[:=][[:space:]]*$q)[^\"'\\\\]*/\\1[scrubbed]/Ig" \
		-e 's/(bearer[[:space:]]+)[A-Za-z0-9._~+\/=-]+/\1[scrubbed]/Ig' \
		-e "s/($secret${q}[[:space:]]*[:=][[:space:]]*\\\\?[\"'])[^\"'\\\\]+/\\1[scrubbed]/Ig" \
		-e "s/(${secret}[[:space:]]*[:=][[:space:]]*)[^\"'\\\\[:space:],;&}]+/\\1[scrubbed]/Ig" \
		-e "s/($secret${q}[[:space:]]*,[[:space:]]*${q}value${q}[[:space:]]*:[[:space:]]*$q)[^\"'\\\\]+/\\1[scrubbed]/Ig" \
		-e 's/(AKIA|ASIA)[A-Z0-9]{12,}/[scrubbed]/g' \
		-e 's/eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*/[scrubbed]/g' \
		-e 's#(://)[^/@[:space:]"]+@#\1[scrubbed]@#g'
}
q="\\\\?[\"']?" # a quote, in a text within a text too
secret='(token|secret|passw(or)?d|private[_-]?key|access[_-]?key([_-]?id)?|key-data|signature|credential)'

# keep ends a step: what it printed goes to a file, its status to the manifest.
keep() {
	scrub <"$work/out" >"$tree/$1"
	case $2 in
	0) note "$1" ok ;;
	124 | 137 | 143) note "$1" "cut off after $limit s" ;;
	*) note "$1" "exit status $2: $(sed -n 1p "$work/err" | scrub)" ;;
	esac
}

# step FILE PROGRAM ARG... keeps what a program prints.
step() {
	file=$1
	shift
	if ! have "$1"; then
		note "$file" "no program $1"
		return
	fi
	bounded "$@" >"$work/out" 2>"$work/err" </dev/null
	keep "$file" $?
}

# copy DIRECTORY FILE... keeps files, unpacked if they are packed.
copy() {
	directory=$1
	shift
	for from; do
		[ -f "$from" ] || continue # also a pattern that nothing matches
		file=$directory/${from##*/}
		case $from in
		*.gz)
			file=${file%.gz}
			bounded gzip -dc "$from" >"$work/out" 2>"$work/err" </dev/null
			;;
		*) bounded tail -c "$most" "$from" >"$work/out" 2>"$work/err" </dev/null ;;
		esac
		keep "$file" $?
	done
}

# dial speaks HTTP where there is neither curl nor wget: HOST PORT METHOD PATH HEADER.
# shellcheck disable=SC2016 # the text is bash's
dial='exec 3<>"/dev/tcp/$1/$2" || exit 7
printf "%s %s HTTP/1.0\r\nHost: %s\r\n%s\r\n" "$3" "$4" "$1" "${5:+$5$(printf "\r\n_")}" | sed "s/^_//" >&3
IFS= read -r status <&3
while IFS= read -r line <&3 && [ "$line" != "$(printf "\r")" ]; do :; done
cat <&3
case $status in *" 200 "*) exit 0 ;; esac
echo "${status%?}" >&2
exit 22'

# get FILE ADDRESS PATH keeps an answer of a server of the node.
get() {
	case $2 in
	unix:*)
		step "$1" curl -q -gsSf --max-time "$limit" --unix-socket "${2#unix:}" "http://localhost$3"
		return
		;;
	esac
	if have curl; then
		step "$1" curl -q -gsSf --max-time "$limit" "http://$2$3"
	elif have wget; then
		step "$1" wget -q -O - "http://$2$3"
	elif have bash; then
		step "$1" bash -c "$dial" bash "${2%:*}" "${2##*:}" GET "$3" ''
	else
		note "$1" "no program curl, wget or bash"
	fi
}

# identity asks the metadata service for one of the few things that say which node this
# is. The token goes over standard input: arguments are everybody's to read.
metadata=169.254.169.254
ask() {
	if have curl; then
		printf 'header = "%s"\n' "$3" | bounded curl -q -gsSf --max-time "$limit" -X "$1" -K - "http://$metadata/latest/$2"
	else
		printf '%s' "$3" | bounded bash -c "header=\$(cat); set -- \"\$@\" \"\$header\"; $dial" bash "$metadata" 80 "$1" "/latest/$2"
	fi
}
identity() {
	if ! have curl && ! have bash; then
		note "system/$1.txt" "no program curl or bash"
		return
	fi
	if [ -z "$token" ]; then
		note "system/$1.txt" "no token of the metadata service"
		return
	fi
	ask GET "meta-data/$2" "X-aws-ec2-metadata-token: $token" >"$work/out" 2>"$work/err"
	keep "system/$1.txt" $?
}

printf 'layout\t%s\ncollected\t%s\n' "$LAYOUT" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$tree/MANIFEST"
for directory in system ipamd var_log var_log/aws-routed-eni cni networking sysctls kubelet; do
	mkdir "$tree/$directory"
done

# Which node this is.
token=
if have curl || have bash; then
	token=$(ask PUT api/token 'X-aws-ec2-metadata-token-ttl-seconds: 60' 2>/dev/null)
fi
identity instance-id instance-id
identity instance-type instance-type
identity availability-zone placement/availability-zone
identity region placement/region
identity mac mac
identity local-ipv4 local-ipv4
token=
step system/uname.txt uname -a
step system/uptime.txt cat /proc/uptime /proc/loadavg
step system/meminfo.txt cat /proc/meminfo
copy system "$root/etc/os-release"
step system/df.txt df -k "$root/var/log" "$root/run" "$root/opt"

# What the daemon says, and what it has written.
for name in enis eni-configs networkutils-env-settings ipamd-env-settings summary config plan failures events logs; do
	get "ipamd/$name.json" "$introspection" "/v1/$name"
done
get ipamd/metrics.txt 127.0.0.1:61678 /metrics
copy ipamd "$root"/run/aws-node/*.json
step ipamd/var-run-aws-node.txt ls -lanR "$root/run/aws-node/"
copy var_log/aws-routed-eni "$root"/var/log/aws-routed-eni/*

# How the runtime calls the plugins. Files of other kinds there may hold credentials.
copy cni "$root"/etc/cni/net.d/*.conf "$root"/etc/cni/net.d/*.conflist
step cni/etc-cni-net.d.txt ls -lan "$root/etc/cni/net.d/"
step cni/opt-cni-bin.txt ls -lan "$root/opt/cni/bin/"

# The network of the node.
step networking/iprule.txt ip -4 rule show
step networking/ip6rule.txt ip -6 rule show
step networking/iproute.txt ip -4 route show table all
step networking/ip6route.txt ip -6 route show table all
step networking/ipaddr.txt ip addr show
step networking/iplink.txt ip -d -s link show
step networking/ipneigh.txt ip -4 neigh show
step networking/ip6neigh.txt ip -6 neigh show
for family in iptables ip6tables; do
	step "networking/$family-save.txt" "$family-save"
	have "$family-nft-save" && step "networking/$family-nft-save.txt" "$family-nft-save"
	tables=/proc/net/ip_tables_names
	[ $family = iptables ] || tables=/proc/net/ip6_tables_names
	# Without tables there is nothing to print, and asking could make the kernel load them.
	if [ -n "$(cat $tables 2>/dev/null)" ]; then
		step "networking/$family-legacy-save.txt" "$family-legacy-save"
	else
		note "networking/$family-legacy-save.txt" "no tables"
	fi
done
step networking/nft.txt nft list ruleset
step networking/conntrack.txt sed -n p /proc/sys/net/netfilter/nf_conntrack_count /proc/sys/net/netfilter/nf_conntrack_max
step networking/conntrack-stat.txt cat /proc/net/stat/nf_conntrack
step networking/arp-stat.txt cat /proc/net/stat/arp_cache
step networking/ndisc-stat.txt cat /proc/net/stat/ndisc_cache
step networking/resolv.conf cat "$root/etc/resolv.conf"

# Kernel settings, as path:value. Two of them are keys.
sysctls() {
	if ! have grep; then
		note sysctls/net.txt "no program grep"
		return
	fi
	bounded grep -rs '' /proc/sys/net/core /proc/sys/net/ipv4 /proc/sys/net/ipv6 /proc/sys/net/netfilter >"$work/all" </dev/null 2>"$work/err"
	code=$?
	[ $code -ne 2 ] || code=0 # some can only be written
	sed -e '/stable_secret:/d' -e '/fastopen_key:/d' "$work/all" >"$work/out"
	keep sysctls/net.txt $code
}
sysctls

# Who calls the plugins.
step kubelet/kubelet-version.txt kubelet --version
step kubelet/containerd-version.txt containerd --version
step kubelet/kubelet.log journalctl --no-pager -q -n 10000 -u kubelet
step kubelet/containerd.log journalctl --no-pager -q -n 5000 -u containerd
step kubelet/kernel.log journalctl --no-pager -q -n 2000 -k

# named prints the instance id if a file has one.
named() {
	name=$(sed -n 1p "$1" 2>/dev/null)
	case ${name#i-} in "$name" | '' | *[!0-9a-z]*) return 1 ;; esac
	echo "$name"
}
id=$(named "$tree/system/instance-id.txt" || named /sys/devices/virtual/dmi/id/board_asset_tag || echo unknown)
bundle=${NAME}_${id}_$(date -u +%Y%m%dT%H%M%SZ)
mv "$tree" "$work/$bundle" || fail 1 "name the files"
if ! tar -cf "$work/out.tar" -C "$work" "$bundle" || ! gzip "$work/out.tar"; then
	fail 1 "pack the files into $out: is there space?"
fi
# Under a name that is there already, nothing is replaced.
ln "$work/out.tar.gz" "$out/$bundle.tar.gz" || fail 1 "write $out/$bundle.tar.gz"
echo "$out/$bundle.tar.gz"
