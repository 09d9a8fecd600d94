package limits

import (
	"iter"
	"strings"
)

// Date is the date of the newest source of the built-in table.
const Date = "2026-09-16"

// Tri is a fact that may be unknown.
type Tri int8

const (
	Unknown Tri = iota
	No
	Yes
)

func (t Tri) String() string {
	switch t {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// Instance holds the network facts of one instance type.
type Instance struct {
	Type string
	// MaxENIs counts the interfaces of the default network card, not of the whole
	// instance: pools and max-pods are computed per card.
	MaxENIs    int
	IPv4PerENI int    // the primary address included
	IPv6PerENI int    // −1 if unknown, 0 without IPv6
	Hypervisor string // "nitro", "xen", or "" for bare metal and a few old types
	BareMetal  bool
	// TrunkingCompatible is Unknown for types that the VPC resource controller does not
	// list: it refuses such nodes, while the daemon reserves a slot for a trunk.
	TrunkingCompatible Tri
	BranchENIs         int // 0 when trunking is No or Unknown
	DefaultCard        int
	Cards              []Card // ordered by index
	VCPUs              int    // 0 if unknown
	MemoryMiB          int    // 0 if unknown
	Arch               string // "arm64", "amd64" or, if unknown, ""
	// PublishedMaxENIs is the figure that the published max-pods files are computed from;
	// it differs from MaxENIs where the card layout was corrected later. 0 if no published
	// file lists the type.
	PublishedMaxENIs int
}

// Card is one network card.
type Card struct {
	Index   int
	MaxENIs int
}

// PrefixDelegation reports whether interfaces of this type can hold /28 prefixes:
// Nitro and bare metal can.
func (i Instance) PrefixDelegation() bool { return i.Hypervisor == "nitro" || i.BareMetal }

// TotalENIs returns the number of interfaces over all network cards, EC2's
// MaximumNetworkInterfaces.
func (i Instance) TotalENIs() int {
	n := 0
	for _, c := range i.Cards {
		n += c.MaxENIs
	}
	return n
}

// ENIsByCard lists the attachable interfaces indexed by network card.
func (i Instance) ENIsByCard() []int {
	n := 0
	for _, c := range i.Cards {
		n = max(n, c.Index+1)
	}
	by := make([]int, n)
	for _, c := range i.Cards {
		by[c.Index] = c.MaxENIs
	}
	return by
}

// Lookup returns the facts of an instance type such as "m5.large".
func Lookup(instanceType string) (Instance, bool) {
	line, ok := find(table, instanceType)
	if !ok {
		return Instance{}, false
	}
	return parse(line), true
}

// Types yields every known type in byte order.
func Types() iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := table; rest != ""; {
			line, next, _ := strings.Cut(rest, "\n")
			rest = next
			name, _, _ := strings.Cut(line, " ")
			if !yield(name) {
				return
			}
		}
	}
}
