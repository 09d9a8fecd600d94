package checkpoint

import (
	"net/netip"
	"time"
)

// Entry is one allocation. At least one of IPv4 and IPv6 is set.
type Entry struct {
	// Card is the network card whose file holds the entry. The file itself does not record
	// it.
	Card int

	NetworkName string
	ContainerID string
	IfName      string

	IPv4 netip.Addr
	IPv6 netip.Addr

	AllocatedAt time.Time // zero in files written before v1.11

	PodNamespace string // "" in files written before v1.11, like PodName
	PodName      string
	Interfaces   int // interfaces the pod asked for; 0 in files written before v1.20
}

// Address returns the allocated address: the IPv4 one if the entry has both.
func (e Entry) Address() netip.Addr {
	if e.IPv4.IsValid() {
		return e.IPv4
	}
	return e.IPv6
}
