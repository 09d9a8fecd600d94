package resync

import "slices"

// Tags that decide who manages an ENI (amazon-vpc-cni-k8s: README.md).
const (
	TagNoManage   = "node.k8s.amazonaws.com/no_manage"
	TagInstanceID = "node.k8s.amazonaws.com/instance_id"
)

// NotManaged is why an ENI is an [Other] because of its tags.
const NotManaged = "not the CNI's to manage"

// InterfaceType is EC2's type of a network interface.
type InterfaceType string

// The types that need special treatment.
const (
	TypeTrunk   InterfaceType = "trunk"
	TypeEFA     InterfaceType = "efa"
	TypeEFAOnly InterfaceType = "efa-only"
)

// Ownership is the verdict on one attached ENI.
type Ownership uint8

const (
	Managed   Ownership = iota // its addresses are for pods
	Unmanaged                  // occupies a slot and is never touched
	Ignored                    // on an unused network card; not counted
)

// OwnershipInput is the input of [Owner].
type OwnershipInput struct {
	Primary        bool
	Card           int
	Type           InterfaceType
	Tags           map[string]string
	InstanceID     string
	ManageUntagged bool // MANAGE_UNTAGGED_ENI
	MultiNIC       bool // ENABLE_MULTI_NIC
}

// Owner reports whether the daemon manages an ENI.
func Owner(in OwnershipInput) Ownership {
	switch {
	case in.Primary:
		return Managed
	case in.Card > 0 && !in.MultiNIC:
		return Ignored
	case in.Type == TypeEFAOnly:
		return Unmanaged
	case in.Tags[TagNoManage] == "true":
		return Unmanaged
	case in.Tags[TagNoManage] != "", in.Tags[TagInstanceID] == in.InstanceID && in.InstanceID != "":
		return Managed
	case in.ManageUntagged:
		return Managed
	default:
		return Unmanaged
	}
}

// EFAOnlyCards lists the network cards beyond the first that cannot serve pods: they have an
// efa-only ENI and no managed one.
func EFAOnlyCards(attached []ENI, owner func(*ENI) Ownership) []int {
	var cards []int
	managed := map[int]bool{}
	for i := range attached {
		e := &attached[i]
		switch o := owner(e); {
		case o == Managed:
			managed[e.Card] = true
		case e.EFAOnly() && e.Card > 0 && o != Ignored:
			cards = append(cards, e.Card)
		}
	}
	cards = slices.DeleteFunc(cards, func(card int) bool { return managed[card] })
	slices.Sort(cards)
	return slices.Compact(cards)
}
