package rules

import (
	"encoding/binary"
	"hash/fnv"
	"strconv"
	"strings"

	"cnictl/daemon/netstate"
)

// Pair is the veth pair of a pod. It is known before the pod has an address. The host end
// is created up, the pod end down.
type Pair struct {
	Host, Pod netstate.End
	MTU       int
	Sysctls   []netstate.Sysctl // of the host end, set before the pod end comes up
}

// Indexes of host ends are far above those that the kernel assigns sequentially, and
// within 24 bits so that the kernel's index tree stays shallow. With 500 pods on a node
// one in 30,000 ADDs hits an index that is taken and continues with [NextHostIndex].
const (
	firstHostIndex = 1 << 20
	hostIndexes    = 1<<24 - 1<<20
)

// podIndex is the first index after lo, which the kernel itself would assign in a fresh
// namespace. Further interfaces of the pod follow; see [Pair.Further].
const podIndex = 2

// NextHostIndex is the index to try after one that is taken.
func NextHostIndex(index int32) int32 {
	return firstHostIndex + (index-firstHostIndex+1)%hostIndexes
}

// NewPair is the veth pair of one interface of a sandbox. The MACs are stable for a
// sandbox and differ between sandboxes. Setting them explicitly keeps udev from changing
// them after the pod's neighbour entry is written.
func NewPair(sandboxID, hostLink, podLink string, mtu int) Pair {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(podLink + "/" + sandboxID))
	seed := hash.Sum64()
	return Pair{
		Host: netstate.End{
			Name:  hostLink,
			Index: firstHostIndex + int32(spread(seed, 1)%hostIndexes),
			MAC:   localMAC(spread(seed, 2)),
		},
		Pod:     netstate.End{Name: podLink, Index: podIndex, MAC: localMAC(spread(seed, 3))},
		MTU:     mtu,
		Sysctls: hostSysctls(hostLink),
	}
}

// Further returns the pair with the pod-end index that interface i would have in a fresh
// namespace.
func (p Pair) Further(i int) Pair {
	p.Pod.Index = podIndex + int32(i)
	return p
}

// spread derives the n-th number from a seed by one step of SplitMix64, since FNV alone
// changes few bits for ids that end alike.
func spread(seed, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// localMAC makes a locally administered unicast address from 46 bits.
func localMAC(v uint64) netstate.MAC {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	m := netstate.MAC(b[2:])
	m[0] = m[0]&^1 | 2
	return m
}

// hostSysctls keep the host from configuring itself from a pod's router advertisements. A
// write to forwarding is restarted until the kernel's network lock is free, so it is read
// first: it is 0 on nearly every node.
func hostSysctls(link string) []netstate.Sysctl {
	return []netstate.Sysctl{
		{Path: netstate.IPv6Setting(link, "accept_ra"), Value: "0"},
		{Path: netstate.IPv6Setting(link, "accept_redirects"), Value: "1"},
		{Path: netstate.IPv6Setting(link, "forwarding"), Value: "0", ReadFirst: true},
	}
}

func (p Pair) String() string {
	var b strings.Builder
	b.WriteString("host link add " + p.Host.String() + " mtu " + strconv.Itoa(p.MTU) +
		" txqueuelen 0 up type veth peer name " + p.Pod.String() + "\n")
	writeSysctls(&b, "host", p.Sysctls)
	return b.String()
}
