package rtnl

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in a notice.
const (
	offType   = 4                            // nlmsg_type, two bytes
	offFlags  = 6                            // nlmsg_flags, two bytes
	offFamily = unix.SizeofNlMsghdr          // in all messages used here
	offPrefix = offFamily + 1                // rtm_dst_len
	offScope  = offFamily + 3                // ifa_scope
	offTable  = offFamily + 4                // rtm_table
	offRule   = offFamily + unix.SizeofRtMsg // attributes of a rule
	offConf   = offFamily + sizeofNetconfHeader
)

// Numbers of include/uapi/linux that golang.org/x/sys/unix lacks.
const (
	netconfForwarding = 2          // NETCONFA_FORWARDING
	netconfProxyNeigh = 5          // NETCONFA_PROXY_NEIGH
	findAttr          = 0xfffff00c // SKF_AD_OFF + SKF_AD_NLATTR: the attribute X from A on, 0: none
)

// low and high return the offsets of the bytes of a two-byte number, which is in machine
// byte order.
func low(offset uint32) uint32 { return offset + uint32(native.Uint16([]byte{0, 1})&1) }

func high(offset uint32) uint32 { return 2*offset + 1 - low(offset) }

// routeFilter makes the kernel hold back messages that come with each ADD and DEL of a pod
// and have no use here: a wake-up costs more than all the work on it. It passes anything
// unknown.
func routeFilter() []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter { return stmt(unix.BPF_LD|unix.BPF_B|unix.BPF_ABS, offset) }
	drop, pass := stmt(unix.BPF_RET|unix.BPF_K, 0), stmt(unix.BPF_RET|unix.BPF_K, ^uint32(0))
	attr := func(from, kind uint32) []unix.SockFilter {
		return []unix.SockFilter{
			stmt(unix.BPF_LD|unix.BPF_IMM, from), stmt(unix.BPF_LDX|unix.BPF_IMM, kind), stmt(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, findAttr),
		}
	}
	// of makes a block for messages of a type. A jump over one instruction skips a verdict.
	of := func(kind uint32, body ...unix.SockFilter) []unix.SockFilter {
		return append([]unix.SockFilter{load(low(offType)), jump(kind, 0, uint8(len(body)))}, body...)
	}
	address := []unix.SockFilter{ // the kernel's own
		load(offFamily), jump(unix.AF_INET6, 1, 0), pass,
		load(offScope), jump(unix.RT_SCOPE_LINK, 0, 1), drop, pass,
	}
	return slices.Concat(
		of(unix.RTM_NEWROUTE, // new ones; not those that replace others
			load(high(offFlags)), jump(unix.NLM_F_REPLACE>>8, 0, 1), pass,
			load(offTable), jump(unix.RT_TABLE_MAIN, 0, 1), drop, jump(unix.RT_TABLE_LOCAL, 0, 1), drop, pass),
		of(unix.RTM_DELROUTE,
			load(offTable), jump(unix.RT_TABLE_LOCAL, 0, 1), drop, jump(unix.RT_TABLE_MAIN, 1, 0), pass,
			load(offPrefix), jump(32, 0, 1), pass, jump(128, 0, 1), pass, drop),
		of(unix.RTM_NEWRULE, append(attr(offRule, unix.FRA_PRIORITY), jump(0, 0, 1), pass, drop)...), // the kernel omits priority 0
		of(unix.RTM_NEWADDR, address...),
		of(unix.RTM_DELADDR, address...),
		of(unix.RTM_NEWNETCONF, slices.Concat( // all settings of a new link
			attr(offConf, netconfForwarding), []unix.SockFilter{jump(0, 0, 1), pass},
			attr(offConf, netconfProxyNeigh), []unix.SockFilter{jump(0, 0, 1), pass, drop})...),
		of(unix.RTM_DELNETCONF, drop),
		[]unix.SockFilter{pass},
	)
}

func stmt(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

// jump skips is instructions if the loaded value is k, isNot instructions otherwise.
func jump(k uint32, is, isNot uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: is, Jf: isNot, K: k}
}

func attachFilter(fd int, program []unix.SockFilter) error {
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}
