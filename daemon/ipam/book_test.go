package ipam

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 8, 21, 9, 0, 0, 0, time.UTC)

func cidrs(list ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, s := range list {
		if !strings.Contains(s, "/") {
			a := netip.MustParseAddr(s)
			all = append(all, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func sandbox(name string) Sandbox {
	return Sandbox{Network: "aws-cni", ContainerID: name, IfName: "eth0"}
}

// ENIs of the tables: a has three secondary IPs, b (device 1) two, p a prefix of each
// family; c is on card 1.
func attachA() AttachENI {
	return AttachENI{
		ENI:   ENI{ID: "eni-a", Primary: true, PrimaryIP: netip.MustParseAddr("10.0.0.4"), RouteTable: 254},
		CIDRs: cidrs("10.0.0.10", "10.0.0.11", "10.0.0.12"),
	}
}

func attachB() AttachENI {
	return AttachENI{ENI: ENI{ID: "eni-b", Device: 1, RouteTable: 2}, CIDRs: cidrs("10.0.1.10", "10.0.1.11")}
}

func attachP() AttachENI {
	return AttachENI{ENI: ENI{ID: "eni-p", Device: 2, RouteTable: 3}, CIDRs: cidrs("10.0.2.16/28", "10.0.2.32/28", "2001:db8::/80")}
}

func attachC() AttachENI {
	return AttachENI{ENI: ENI{ID: "eni-c", Card: 1, RouteTable: 10000}, CIDRs: cidrs("10.0.3.10")}
}

func add(name string) Assign {
	return Assign{Sandbox: sandbox(name), Pod: Pod{Namespace: "ns", Name: name}, Family: IPv4}
}

func addPrefix(name string, f Family) Assign {
	return Assign{Sandbox: sandbox(name), Kind: Prefixes, Family: f}
}

func del(name string) Unassign { return Unassign{Sandbox: sandbox(name)} }

func restore(name, addr string) Restore {
	return Restore{Sandbox: sandbox(name), Address: netip.MustParseAddr(addr), AssignedAt: start.Add(-time.Hour)}
}

// after is an event that follows the previous one after some time.
type after struct {
	d  time.Duration
	ev Event
}

func (after) isEvent() {}

// TestBook applies a row's events at one time (unless `after` says otherwise), all but the
// last without error, and checks the result of the last one.
func TestBook(t *testing.T) {
	t.Parallel()
	long := Sandbox{Network: "_migrated-from-cri", ContainerID: "old", IfName: "unknown"}
	rows := []struct {
		name     string
		cooldown time.Duration // 0 means 30 s, −1 none
		events   []Event
		err      error
		assigned string // addresses, sorted
		released string
		state    string // see render; "" skips the comparison
	}{
		// Attach.
		{name: "attach shows the ENI", events: []Event{attachB()}, state: "eni-b: 10.0.1.10 10.0.1.11"},
		{name: "attach twice", events: []Event{attachA(), attachA()}, err: ErrDuplicate},
		{name: "attach without id", events: []Event{AttachENI{}}, err: ErrInvalid},
		{name: "attach takes no address of another ENI", events: []Event{attachA(), AttachENI{ENI: ENI{ID: "eni-x"}, CIDRs: cidrs("10.0.9.1", "10.0.0.11")}}, err: ErrDuplicate, state: "eni-a: 10.0.0.10 10.0.0.11 10.0.0.12"},
		{name: "attach refuses its primary address for pods", events: []Event{AttachENI{ENI: ENI{ID: "eni-x", PrimaryIP: netip.MustParseAddr("10.0.0.4")}, CIDRs: cidrs("10.0.0.4")}}, err: ErrInvalid},
		{name: "attach orders by card, device, id", events: []Event{attachC(), attachP(), attachB(), attachA()}, state: "eni-a: 10.0.0.10 10.0.0.11 10.0.0.12\neni-b: 10.0.1.10 10.0.1.11\neni-p: 10.0.2.16/28 10.0.2.32/28 2001:db8::/80\neni-c: 10.0.3.10"},
		{name: "attach places what was restored before", events: []Event{restore("s", "10.0.1.11"), attachB()}, assigned: "10.0.1.11", state: "eni-b: 10.0.1.10 10.0.1.11=s"},

		// Detach.
		{name: "detach", events: []Event{attachA(), attachB(), DetachENI{ID: "eni-b"}}, state: "eni-a: 10.0.0.10 10.0.0.11 10.0.0.12"},
		{name: "detach unknown", events: []Event{DetachENI{ID: "eni-x"}}, err: ErrUnknownENI},
		{name: "detach with pods", events: []Event{attachA(), add("s"), DetachENI{ID: "eni-a"}}, err: ErrENIInUse, state: "eni-a: 10.0.0.10=s 10.0.0.11 10.0.0.12"},
		{name: "forced detach ends assignments", events: []Event{attachA(), add("s"), add("t"), DetachENI{ID: "eni-a", Force: true}}, released: "10.0.0.10 10.0.0.11", state: ""},
		{name: "detach with cooling addresses", events: []Event{attachA(), add("s"), del("s"), DetachENI{ID: "eni-a"}}},

		// Exclusion and holds.
		{name: "excluded ENI gives nothing", events: []Event{attachA(), SetExcluded{"eni-a", true}, add("s")}, err: ErrNoAddress},
		{name: "excluded ENI keeps its pods", events: []Event{attachA(), add("s"), SetExcluded{"eni-a", true}, add("s")}, assigned: "10.0.0.10"},
		{name: "excluded ENI can come back", events: []Event{attachA(), SetExcluded{"eni-a", true}, SetExcluded{"eni-a", false}, add("s")}, assigned: "10.0.0.10"},
		{name: "exclude unknown", events: []Event{SetExcluded{"eni-x", true}}, err: ErrUnknownENI},
		{name: "custom networking: the primary is excluded at attach", events: []Event{AttachENI{ENI: ENI{ID: "eni-x", Primary: true, Excluded: true}, CIDRs: cidrs("10.0.0.10")}, attachB(), add("s")}, assigned: "10.0.1.10"},
		{name: "held ENI gives nothing", events: []Event{attachA(), HoldENI{"eni-a"}, add("s")}, err: ErrNoAddress, state: "eni-a held: 10.0.0.10 10.0.0.11 10.0.0.12"},
		{name: "hold ENI with pods", events: []Event{attachA(), add("s"), HoldENI{"eni-a"}}, err: ErrENIInUse},
		{name: "hold unknown ENI", events: []Event{HoldENI{"eni-x"}}, err: ErrUnknownENI},
		{name: "unhold unknown ENI", events: []Event{UnholdENI{"eni-x"}}, err: ErrUnknownENI},
		{name: "unheld ENI gives again", events: []Event{attachA(), HoldENI{"eni-a"}, UnholdENI{"eni-a"}, add("s")}, assigned: "10.0.0.10"},
		{name: "held CIDR is passed over", events: []Event{attachA(), HoldCIDRs{"eni-a", cidrs("10.0.0.10")}, add("s")}, assigned: "10.0.0.11", state: "eni-a: 10.0.0.10(held) 10.0.0.11=s 10.0.0.12"},
		{name: "hold is all or nothing", events: []Event{attachA(), add("s"), HoldCIDRs{"eni-a", cidrs("10.0.0.11", "10.0.0.10")}}, err: ErrCIDRInUse, state: "eni-a: 10.0.0.10=s 10.0.0.11 10.0.0.12"},
		{name: "hold a CIDR of another ENI", events: []Event{attachA(), attachB(), HoldCIDRs{"eni-a", cidrs("10.0.1.10")}}, err: ErrUnknownCIDR},
		{name: "unheld CIDR gives again", events: []Event{attachA(), HoldCIDRs{"eni-a", cidrs("10.0.0.10")}, UnholdCIDRs{"eni-a", cidrs("10.0.0.10")}, add("s")}, assigned: "10.0.0.10"},
		{name: "held CIDR is removed", events: []Event{attachB(), HoldCIDRs{"eni-b", cidrs("10.0.1.10")}, RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10")}}, state: "eni-b: 10.0.1.11"},

		// Quarantine.
		{name: "quarantined CIDR gives nothing", events: []Event{attachB(), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, add("s")}, assigned: "10.0.1.11"},
		{name: "nor does a quarantined ENI", events: []Event{attachB(), QuarantineENI{"eni-b"}, add("s")}, err: ErrNoAddress},
		{name: "nor what comes to it", events: []Event{attachB(), QuarantineENI{"eni-b"}, AddCIDRs{"eni-b", cidrs("10.0.1.12")}, add("s")}, err: ErrNoAddress},
		{name: "quarantine keeps pods", events: []Event{attachB(), add("s"), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, QuarantineENI{"eni-b"}, add("s")}, assigned: "10.0.1.10"},
		{name: "which can end", events: []Event{attachB(), add("s"), QuarantineENI{"eni-b"}, del("s")}, released: "10.0.1.10"},
		{name: "and keeps them from being removed", events: []Event{attachB(), add("s"), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10")}}, err: ErrCIDRInUse},
		{name: "it goes without", events: []Event{attachB(), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10")}}, state: "eni-b: 10.0.1.11"},
		{name: "restore places in a quarantined CIDR", events: []Event{attachB(), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, restore("s", "10.0.1.10")}, assigned: "10.0.1.10", state: "eni-b: 10.0.1.10=s 10.0.1.11"},
		{name: "quarantined CIDR is not held", events: []Event{attachB(), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, HoldCIDRs{"eni-b", cidrs("10.0.1.10")}}, err: ErrQuarantined},
		{name: "nor is one of a quarantined ENI", events: []Event{attachB(), QuarantineENI{"eni-b"}, HoldCIDRs{"eni-b", cidrs("10.0.1.10")}}, err: ErrQuarantined},
		{name: "quarantined ENI is not held", events: []Event{attachB(), QuarantineENI{"eni-b"}, HoldENI{"eni-b"}}, err: ErrQuarantined},
		{name: "nor is one with a quarantined CIDR", events: []Event{attachB(), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, HoldENI{"eni-b"}}, err: ErrQuarantined},
		{name: "quarantine can end", events: []Event{attachB(), QuarantineENI{"eni-b"}, QuarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, UnquarantineENI{"eni-b"}, UnquarantineCIDRs{"eni-b", cidrs("10.0.1.10")}, add("s")}, assigned: "10.0.1.10"},
		{name: "that of an ENI is not that of its CIDRs", events: []Event{attachC(), QuarantineCIDRs{"eni-c", cidrs("10.0.3.10")}, QuarantineENI{"eni-c"}, UnquarantineENI{"eni-c"}, Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}}, err: ErrNoAddress},
		{name: "quarantine of unknown CIDRs", events: []Event{attachB(), QuarantineCIDRs{"eni-b", cidrs("10.0.1.10", "10.0.1.99")}}, err: ErrUnknownCIDR, state: "eni-b: 10.0.1.10 10.0.1.11"},
		{name: "quarantine of an unknown ENI", events: []Event{QuarantineENI{"eni-x"}}, err: ErrUnknownENI},
		{name: "its end", events: []Event{UnquarantineENI{"eni-x"}}, err: ErrUnknownENI},
		{name: "a cooling address rests on through a hold", events: []Event{attachC(), Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}, del("s"), HoldCIDRs{"eni-c", cidrs("10.0.3.10")}, UnholdCIDRs{"eni-c", cidrs("10.0.3.10")}, Assign{Sandbox: sandbox("t"), Card: 1, Family: IPv4}}, err: ErrNoAddress},

		// CIDRs.
		{name: "add CIDRs, one known", events: []Event{attachB(), AddCIDRs{"eni-b", cidrs("10.0.1.10", "10.0.1.12", "10.0.1.12")}}, state: "eni-b: 10.0.1.10 10.0.1.11 10.0.1.12"},
		{name: "add to unknown ENI", events: []Event{AddCIDRs{"eni-x", cidrs("10.0.1.12")}}, err: ErrUnknownENI},
		{name: "add an address of another ENI", events: []Event{attachA(), attachB(), AddCIDRs{"eni-b", cidrs("10.0.1.12", "10.0.0.10")}}, err: ErrDuplicate},
		{name: "add an address inside a prefix", events: []Event{attachP(), attachA(), AddCIDRs{"eni-a", cidrs("10.0.2.17")}}, err: ErrDuplicate},
		{name: "add a prefix over an address", events: []Event{attachA(), AddCIDRs{"eni-a", cidrs("10.0.0.0/28")}}, err: ErrInvalid}, // contains the primary address
		{name: "add a prefix over another ENI's address", events: []Event{attachA(), attachB(), AddCIDRs{"eni-b", cidrs("10.0.0.0/28")}}, err: ErrDuplicate},
		{name: "add an overlapping pair", events: []Event{attachB(), AddCIDRs{"eni-b", cidrs("10.0.5.3", "10.0.5.0/28")}}, err: ErrDuplicate, state: "eni-b: 10.0.1.10 10.0.1.11"},
		{name: "add a /24", events: []Event{attachB(), AddCIDRs{"eni-b", cidrs("10.0.5.0/24")}}, err: ErrInvalid},
		{name: "add an IPv6 /64", events: []Event{attachB(), AddCIDRs{"eni-b", cidrs("2001:db8::/64")}}, err: ErrInvalid},
		{name: "add an unmasked prefix", events: []Event{attachB(), AddCIDRs{"eni-b", cidrs("10.0.5.1/28")}}, err: ErrInvalid},
		{name: "add an IPv4-mapped address", events: []Event{attachB(), AddCIDRs{"eni-b", cidrs("::ffff:10.0.5.1")}}, err: ErrInvalid},
		{name: "add the zero prefix", events: []Event{attachB(), AddCIDRs{"eni-b", []netip.Prefix{{}}}}, err: ErrInvalid},
		{name: "remove", events: []Event{attachB(), RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10", "10.0.1.10")}}, state: "eni-b: 10.0.1.11"},
		{name: "remove with a pod", events: []Event{attachB(), add("s"), RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.11", "10.0.1.10")}}, err: ErrCIDRInUse, state: "eni-b: 10.0.1.10=s 10.0.1.11"},
		{name: "remove unknown", events: []Event{attachB(), RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.11", "10.0.1.99")}}, err: ErrUnknownCIDR, state: "eni-b: 10.0.1.10 10.0.1.11"},
		{name: "forced removal ends the assignment", events: []Event{attachB(), add("s"), RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10"), Force: true}}, released: "10.0.1.10", state: "eni-b: 10.0.1.11"},
		{name: "after a forced removal the sandbox can have another", events: []Event{attachB(), add("s"), RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10"), Force: true}, add("s")}, assigned: "10.0.1.11"},

		// Assign.
		{name: "assign", events: []Event{attachA(), add("s")}, assigned: "10.0.0.10", state: "eni-a: 10.0.0.10=s 10.0.0.11 10.0.0.12"},
		{name: "assign to an incomplete sandbox", events: []Event{attachA(), Assign{Sandbox: Sandbox{ContainerID: "s"}, Family: IPv4}}, err: ErrInvalid},
		{name: "assign of no family", events: []Event{attachA(), Assign{Sandbox: sandbox("s")}}, err: ErrInvalid},
		{name: "assign from an empty book", events: []Event{add("s")}, err: ErrNoAddress},
		{name: "assign from the other card", events: []Event{attachA(), attachC(), Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}}, assigned: "10.0.3.10"},
		{name: "secondary IPs do not serve prefix mode", events: []Event{attachA(), addPrefix("s", IPv4)}, err: ErrNoAddress},
		{name: "prefixes do not serve secondary-IP mode", events: []Event{attachP(), add("s")}, err: ErrNoAddress},
		{name: "IPv4 prefixes do not serve IPv6", events: []Event{AttachENI{ENI: ENI{ID: "eni-x"}, CIDRs: cidrs("10.0.2.16/28")}, addPrefix("s", IPv6)}, err: ErrNoAddress},
		{name: "a prefix gives its lowest address, the network address too", events: []Event{attachP(), addPrefix("s", IPv4)}, assigned: "10.0.2.16"},
		{name: "a /80 gives its lowest address", events: []Event{attachP(), addPrefix("s", IPv6), addPrefix("t", IPv6)}, assigned: "2001:db8::1"},
		{name: "the fullest ENI first", events: []Event{attachA(), attachB(), restore("r", "10.0.1.11"), add("s")}, assigned: "10.0.1.10"},
		{name: "among equal ENIs the one that stays", events: []Event{attachB(), AttachENI{ENI: ENI{ID: "eni-t", Device: 3, Trunk: true}, CIDRs: cidrs("10.0.4.10")}, add("s")}, assigned: "10.0.4.10"},
		{name: "among equal ENIs the lower device", events: []Event{AttachENI{ENI: ENI{ID: "eni-d", Device: 4}, CIDRs: cidrs("10.0.4.10")}, attachB(), add("s")}, assigned: "10.0.1.10"},
		{name: "the fullest prefix first", events: []Event{attachP(), restore("r", "10.0.2.40"), addPrefix("s", IPv4)}, assigned: "10.0.2.32"},
		{name: "the fullest ENI has the emptier prefix", events: []Event{
			attachP(), AttachENI{ENI: ENI{ID: "eni-q", Device: 3}, CIDRs: cidrs("10.0.4.0/28", "10.0.4.16/28")},
			restore("r1", "10.0.4.1"), restore("r2", "10.0.4.17"), restore("r3", "10.0.4.18"), restore("r4", "10.0.2.17"), restore("r5", "10.0.2.18"), addPrefix("s", IPv4),
		}, assigned: "10.0.4.16"},
		{name: "an address never used before one that rested", events: []Event{attachA(), add("s"), del("s"), after{time.Minute, add("t")}}, assigned: "10.0.0.11"},
		{name: "the one that rested longest", events: []Event{
			attachB(), add("s"), add("t"), after{time.Second, del("t")}, after{time.Second, del("s")}, after{time.Minute, add("u")},
		}, assigned: "10.0.1.11"},
		{name: "that rested for ten minutes: the lowest", events: []Event{
			attachA(), add("s"), add("t"), del("t"), del("s"), after{freshAfter, add("u")},
		}, assigned: "10.0.0.10"},
		{name: "not before", events: []Event{attachA(), add("s"), del("s"), after{freshAfter - 1, add("t")}}, assigned: "10.0.0.11"},
		{name: "of two that rested for ten minutes the lowest, not the one that rested longest", events: []Event{
			attachB(), add("s"), add("t"), after{time.Second, del("t")}, after{time.Second, del("s")}, after{freshAfter, add("u")},
		}, assigned: "10.0.1.10"},
		{name: "an address used again waits ten minutes again", events: []Event{
			attachA(), add("s"), del("s"), after{freshAfter, add("t")}, del("t"), after{time.Minute, add("u")},
		}, assigned: "10.0.0.11"},
		{name: "a /80 reuses before it takes a new address", events: []Event{attachP(), addPrefix("s", IPv6), del("s"), after{time.Minute, addPrefix("t", IPv6)}}, assigned: "2001:db8::"},

		// Unassign and cooldown.
		{name: "unassign", events: []Event{attachC(), Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}, del("s")}, released: "10.0.3.10", state: "eni-c: 10.0.3.10(cooling)"},
		{name: "unassign unknown", events: []Event{del("s")}, err: ErrUnknownSandbox},
		{name: "unassign by alias", events: []Event{attachB(), Restore{Sandbox: long, Address: netip.MustParseAddr("10.0.1.10")}, Unassign{Sandbox: sandbox("old"), Aliases: []Sandbox{long}}}, released: "10.0.1.10"},
		{name: "unassign prefers the sandbox itself", events: []Event{attachB(), Restore{Sandbox: long, Address: netip.MustParseAddr("10.0.1.10")}, add("old"), Unassign{Sandbox: sandbox("old"), Aliases: []Sandbox{long}}}, released: "10.0.1.11"},
		{name: "unassign twice", events: []Event{attachB(), add("s"), del("s"), del("s")}, err: ErrUnknownSandbox},
		{name: "rests at exactly the cooldown", events: []Event{attachC(), Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}, del("s"), after{30 * time.Second, Assign{Sandbox: sandbox("t"), Card: 1, Family: IPv4}}}, err: ErrNoAddress},
		{name: "is free a nanosecond later", events: []Event{attachC(), Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}, del("s"), after{30*time.Second + 1, Assign{Sandbox: sandbox("t"), Card: 1, Family: IPv4}}}, assigned: "10.0.3.10"},
		{name: "no cooldown: the released one is the last choice", cooldown: -1, events: []Event{attachB(), add("s"), del("s"), add("t")}, assigned: "10.0.1.11"},
		{name: "no cooldown: but it is a choice", cooldown: -1, events: []Event{attachB(), add("s"), del("s"), add("t"), add("u")}, assigned: "10.0.1.10"},
		{name: "a clock that runs backends no rest", events: []Event{attachC(), Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}, del("s"), after{-time.Hour, Assign{Sandbox: sandbox("t"), Card: 1, Family: IPv4}}}, err: ErrNoAddress},

		// Revert and Reassign.
		{name: "revert", events: []Event{attachB(), add("s"), Revert{sandbox("s")}}, released: "10.0.1.10", state: "eni-b: 10.0.1.10 10.0.1.11"},
		{name: "revert leaves no cooldown", events: []Event{attachB(), add("s"), Revert{sandbox("s")}, add("t")}, assigned: "10.0.1.10"},
		{name: "revert keeps the earlier rest", events: []Event{
			attachB(), add("s"), add("t"), del("t"), after{time.Second, del("s")}, after{time.Minute, add("u")}, Revert{sandbox("u")}, add("v"),
		}, assigned: "10.0.1.11"},
		{name: "revert unknown", events: []Event{Revert{sandbox("s")}}, err: ErrUnknownSandbox},
		{name: "reassign", events: []Event{attachB(), add("s"), after{time.Second, del("s")}, Reassign{Assignment{Sandbox: sandbox("s"), Address: netip.MustParseAddr("10.0.1.10"), AssignedAt: start}}}, assigned: "10.0.1.10", state: "eni-b: 10.0.1.10=s 10.0.1.11"},
		{name: "reassign a taken address", cooldown: -1, events: []Event{attachC(), Assign{Sandbox: sandbox("s"), Card: 1, Family: IPv4}, del("s"), Assign{Sandbox: sandbox("t"), Card: 1, Family: IPv4}, Reassign{Assignment{Sandbox: sandbox("s"), Address: netip.MustParseAddr("10.0.3.10")}}}, err: ErrAddressTaken},
		{name: "reassign an address whose CIDR is gone", events: []Event{attachB(), add("s"), del("s"), RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10")}, Reassign{Assignment{Sandbox: sandbox("s"), Address: netip.MustParseAddr("10.0.1.10")}}}, assigned: "10.0.1.10", state: "eni-b: 10.0.1.11\nunplaced: 10.0.1.10=s"},

		// Restore.
		{name: "restore into a CIDR", events: []Event{attachB(), restore("s", "10.0.1.11")}, assigned: "10.0.1.11", state: "eni-b: 10.0.1.10 10.0.1.11=s"},
		{name: "restore on an excluded ENI", events: []Event{attachB(), SetExcluded{"eni-b", true}, restore("s", "10.0.1.11")}, assigned: "10.0.1.11"},
		{name: "restore twice", events: []Event{attachB(), restore("s", "10.0.1.11"), restore("s", "10.0.1.11")}, assigned: "10.0.1.11"},
		{name: "restore a second address", events: []Event{attachB(), restore("s", "10.0.1.11"), restore("s", "10.0.1.10")}, err: ErrDuplicate},
		{name: "restore a taken address", events: []Event{attachB(), restore("s", "10.0.1.11"), restore("t", "10.0.1.11")}, err: ErrAddressTaken},
		{name: "restore a taken unknown address", events: []Event{restore("s", "10.9.9.9"), restore("t", "10.9.9.9")}, err: ErrAddressTaken},
		{name: "restore without sandbox", events: []Event{Restore{Address: netip.MustParseAddr("10.0.1.11")}}, err: ErrInvalid},
		{name: "restore without address", events: []Event{Restore{Sandbox: sandbox("s")}}, err: ErrInvalid},
		{name: "restore an unknown address", events: []Event{attachB(), restore("s", "10.9.9.9")}, assigned: "10.9.9.9", state: "eni-b: 10.0.1.10 10.0.1.11\nunplaced: 10.9.9.9=s"},
		{name: "an unplaced sandbox keeps its address", events: []Event{attachB(), restore("s", "10.9.9.9"), add("s")}, assigned: "10.9.9.9"},
		{name: "an unplaced address is placed with its prefix", events: []Event{attachP(), restore("s", "10.9.9.9"), AddCIDRs{"eni-p", cidrs("10.9.9.0/28")}}, assigned: "10.9.9.9"},
		{name: "a placed address is not given again", events: []Event{restore("s", "10.0.3.10"), attachC(), Assign{Sandbox: sandbox("t"), Card: 1, Family: IPv4}}, err: ErrNoAddress},
		{name: "unassign an unplaced address", events: []Event{attachB(), restore("s", "10.9.9.9"), del("s")}, released: "10.9.9.9", state: "eni-b: 10.0.1.10 10.0.1.11"},
		{name: "restore into a held CIDR waits", events: []Event{attachB(), HoldCIDRs{"eni-b", cidrs("10.0.1.10")}, restore("s", "10.0.1.10")}, assigned: "10.0.1.10", state: "eni-b: 10.0.1.10(held) 10.0.1.11\nunplaced: 10.0.1.10=s"},
		{name: "and is placed when the hold ends", events: []Event{attachB(), HoldCIDRs{"eni-b", cidrs("10.0.1.10")}, restore("s", "10.0.1.10"), UnholdCIDRs{"eni-b", cidrs("10.0.1.10")}}, assigned: "10.0.1.10", state: "eni-b: 10.0.1.10=s 10.0.1.11"},
		{name: "restore on a held ENI is placed when the hold ends", events: []Event{attachB(), HoldENI{"eni-b"}, restore("s", "10.0.1.10"), UnholdENI{"eni-b"}}, assigned: "10.0.1.10", state: "eni-b: 10.0.1.10=s 10.0.1.11"},
		{name: "restore outlives a finished release", events: []Event{attachB(), HoldCIDRs{"eni-b", cidrs("10.0.1.10")}, restore("s", "10.0.1.10"), RemoveCIDRs{ID: "eni-b", CIDRs: cidrs("10.0.1.10")}}, state: "eni-b: 10.0.1.11\nunplaced: 10.0.1.10=s"},
		{name: "no event", events: []Event{nil}, err: ErrInvalid},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			cooldown := row.cooldown
			if cooldown == 0 {
				cooldown = 30 * time.Second
			}
			b, now := New(Options{Cooldown: cooldown}), start
			var ch Change
			var err error
			for i, ev := range row.events {
				if a, ok := ev.(after); ok {
					now, ev = now.Add(a.d), a.ev
				}
				if err != nil {
					t.Fatalf("event %d: %v", i-1, err)
				}
				ch, err = b.Apply(now, ev)
				if broken := b.Check(); broken != nil {
					t.Fatalf("after event %d: %v", i, broken)
				}
			}
			if !errors.Is(err, row.err) || (err != nil && row.err == nil) {
				t.Fatalf("error %v, want %v", err, row.err)
			}
			if got := join(ch.Assigned); got != row.assigned {
				t.Errorf("assigned %q, want %q", got, row.assigned)
			}
			if got := join(ch.Released); got != row.released {
				t.Errorf("released %q, want %q", got, row.released)
			}
			if got := render(b.Snapshot(), now, cooldown); row.state != "" && got != row.state {
				t.Errorf("state:\n%s\nwant:\n%s", got, row.state)
			}
		})
	}
}

func join(list []Assignment) string {
	var all []string
	for _, a := range addresses(list) {
		all = append(all, a.String())
	}
	return strings.Join(all, " ")
}

// render prints a snapshot: per ENI its CIDRs with their owners; secondary IPs have no
// prefix length.
func render(s Snapshot, now time.Time, cooldown time.Duration) string {
	var lines []string
	for _, e := range s.ENIs {
		line := string(e.ID)
		if e.Held {
			line += " held"
		}
		line += ":"
		for _, c := range e.CIDRs {
			line += " " + renderCIDR(c, now, cooldown)
		}
		lines = append(lines, line)
	}
	for _, a := range s.Unplaced {
		lines = append(lines, fmt.Sprintf("unplaced: %v=%s", a.Address, a.Sandbox.ContainerID))
	}
	return strings.Join(lines, "\n")
}

func renderCIDR(c CIDRState, now time.Time, cooldown time.Duration) string {
	text := c.Prefix.String()
	if !c.IsPrefix() {
		text = c.Prefix.Addr().String()
	}
	if c.Held {
		text += "(held)"
	}
	for _, r := range c.Records {
		switch {
		case r.Assigned():
			text += "=" + r.Sandbox.ContainerID
		case r.Cooling(now, cooldown):
			text += "(cooling)"
		}
	}
	return text
}

func TestBook_AssignmentFields(t *testing.T) {
	t.Parallel()
	b := New(Options{})
	mustApply(t, b, start, attachP())
	ch := mustApply(t, b, start.Add(time.Second), Assign{Sandbox: sandbox("s"), Pod: Pod{"shop", "cart", 2}, Kind: Prefixes, Family: IPv4})
	want := Assignment{
		Sandbox: sandbox("s"), Pod: Pod{"shop", "cart", 2},
		Address: netip.MustParseAddr("10.0.2.16"), CIDR: netip.MustParsePrefix("10.0.2.16/28"),
		ENI: "eni-p", Device: 2, RouteTable: 3, AssignedAt: start.Add(time.Second),
	}
	if len(ch.Assigned) != 1 || ch.Assigned[0] != want || ch.Existing {
		t.Fatalf("assigned %+v (existing %v), want %+v", ch.Assigned, ch.Existing, want)
	}
	if ch := mustApply(t, b, start.Add(time.Minute), Assign{Sandbox: sandbox("s"), Kind: Prefixes, Family: IPv4}); !ch.Existing || ch.Assigned[0] != want {
		t.Errorf("second ADD: %+v, want the same address and time", ch)
	}
	if got, ok := b.Lookup(sandbox("s")); !ok || got != want {
		t.Errorf("Lookup: %+v, %v", got, ok)
	}
	if got, ok := b.AtAddress(want.Address); !ok || got != want {
		t.Errorf("AtAddress: %+v, %v", got, ok)
	}
	if _, ok := b.Lookup(sandbox("t")); ok {
		t.Error("Lookup finds a sandbox that was never there")
	}
	if _, ok := b.AtAddress(want.Address.Next()); ok {
		t.Error("AtAddress finds a free address")
	}
}

func TestBook_Assignments(t *testing.T) {
	t.Parallel()
	b := New(Options{})
	for _, ev := range []Event{attachB(), attachA(), restore("u2", "10.9.9.9"), restore("u1", "10.9.9.8"), restore("b", "10.0.1.11"), restore("a2", "10.0.0.12"), restore("a1", "10.0.0.10")} {
		mustApply(t, b, start, ev)
	}
	var got []string
	for a := range b.Assignments() {
		got = append(got, a.Sandbox.ContainerID)
	}
	if want := []string{"a1", "a2", "b", "u1", "u2"}; !slices.Equal(got, want) {
		t.Errorf("assignments %v, want %v", got, want)
	}
	for a := range b.Assignments() { // may stop early
		if a.Sandbox.ContainerID != "a1" {
			t.Errorf("first assignment %v", a)
		}
		break
	}
}

// A /80 with hundreds of pods: addresses are found without a walk, and there are never more
// records than addresses in use at one time.
func TestBook_LargePrefix(t *testing.T) {
	t.Parallel()
	b, now := New(Options{Cooldown: 30 * time.Second}), start
	mustApply(t, b, now, attachP())
	base := netip.MustParseAddr("2001:db8::")
	for round := range 5 {
		for i := range 300 {
			now = now.Add(time.Millisecond)
			ch := mustApply(t, b, now, addPrefix(fmt.Sprint(i), IPv6))
			if round == 0 && low64(ch.Assigned[0].Address)-low64(base) != uint64(i) {
				t.Fatalf("pod %d got %v", i, ch.Assigned[0].Address)
			}
		}
		for i := range 300 {
			now = now.Add(time.Millisecond)
			mustApply(t, b, now, del(fmt.Sprint(i)))
		}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
	}
	c := b.Snapshot().ENIs[0].CIDRs[2]
	if len(c.Records) != 300 || c.Size() != 1<<48 {
		t.Errorf("%v keeps %d records of %d addresses", c.Prefix, len(c.Records), c.Size())
	}
	mustApply(t, b, now, restore("far", "2001:db8::ffff:ffff:ffff"))
	if a, ok := b.Lookup(sandbox("far")); !ok || a.ENI != "eni-p" {
		t.Errorf("the last address of the prefix: %+v", a)
	}
}

// Pods that end in random places leave room that later pods fill, so whole prefixes become
// free (docs/compatibility.md, 13.1-9).
func TestBook_Packs(t *testing.T) {
	t.Parallel()
	b, now := New(Options{Cooldown: time.Second}), start
	e := AttachENI{ENI: ENI{ID: "eni-x"}}
	for i := range 8 {
		e.CIDRs = append(e.CIDRs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(16 * i)}), 28))
	}
	mustApply(t, b, now, e)
	for i := range 128 {
		mustApply(t, b, now, addPrefix(fmt.Sprint(i), IPv4))
	}
	for i := range 128 { // a quarter stays, spread over all prefixes
		if i%4 != 0 {
			mustApply(t, b, now, del(fmt.Sprint(i)))
		}
	}
	for i := range 96 { // short-lived pods replace the old ones
		now = now.Add(2 * time.Second)
		mustApply(t, b, now, addPrefix(fmt.Sprint("new", i), IPv4))
		if i < 32 {
			mustApply(t, b, now, del(fmt.Sprint(4*i)))
		} else {
			mustApply(t, b, now, del(fmt.Sprint("new", i-32)))
		}
	}
	totals := b.Snapshot().Totals(0, Prefixes, now.Add(time.Minute), time.Second)
	if totals.Assigned != 32 || totals.FreePrefixes < 5 {
		t.Errorf("32 pods occupy %d of 8 prefixes: %+v", 8-totals.FreePrefixes, totals)
	}
}

func TestSnapshot_Quarantine(t *testing.T) {
	t.Parallel()
	b := New(Options{Cooldown: time.Second})
	mustApply(t, b, start, attachA())
	mustApply(t, b, start, attachB())
	mustApply(t, b, start, QuarantineCIDRs{"eni-a", cidrs("10.0.0.10")})
	mustApply(t, b, start, QuarantineENI{"eni-b"})
	again := start.Add(time.Minute) // a persisting quarantine keeps its time
	mustApply(t, b, again, QuarantineCIDRs{"eni-a", cidrs("10.0.0.10", "10.0.0.11")})
	mustApply(t, b, again, QuarantineENI{"eni-b"})
	s := b.Snapshot()
	a, other := s.ENIs[0], s.ENIs[1]
	if a.Quarantined() || !other.QuarantinedAt.Equal(start) || other.CIDRs[0].Quarantined() ||
		!a.CIDRs[0].QuarantinedAt.Equal(start) || !a.CIDRs[1].QuarantinedAt.Equal(again) || a.CIDRs[2].Quarantined() {
		t.Errorf("%+v", s.ENIs)
	}
	if got := s.Totals(0, SecondaryIPs, again, time.Second); got != (Totals{Total: 1, Free: 1}) {
		t.Errorf("totals %+v", got)
	}
	mustApply(t, b, again, UnquarantineCIDRs{"eni-a", cidrs("10.0.0.10")})
	mustApply(t, b, again, UnquarantineENI{"eni-b"})
	if got := b.Snapshot().Totals(0, SecondaryIPs, again, time.Second); got != (Totals{Total: 4, Free: 4}) {
		t.Errorf("totals %+v", got)
	}
}

func TestSnapshot_SharesWhatDidNotChange(t *testing.T) {
	t.Parallel()
	b := New(Options{Cooldown: time.Second})
	mustApply(t, b, start, attachA())
	mustApply(t, b, start, attachB())
	mustApply(t, b, start, restore("r", "10.0.1.10"))
	before := b.Snapshot()
	if again := b.Snapshot(); &again.ENIs[0] != &before.ENIs[0] {
		t.Error("a second snapshot of the same book is another one")
	}
	mustApply(t, b, start, add("s")) // assigned on eni-b
	after := b.Snapshot()
	if &before.ENIs[0].CIDRs[0] != &after.ENIs[0].CIDRs[0] {
		t.Error("the unchanged ENI was built again")
	}
	if &before.ENIs[1].CIDRs[0] == &after.ENIs[1].CIDRs[0] {
		t.Error("the changed ENI was not")
	}
	if &before.ENIs[1].CIDRs[0].Records[0] != &after.ENIs[1].CIDRs[0].Records[0] {
		t.Error("the records of an unchanged CIDR were built again")
	}
	if got := render(before, start, 0); got != "eni-a: 10.0.0.10 10.0.0.11 10.0.0.12\neni-b: 10.0.1.10=r 10.0.1.11" {
		t.Errorf("an earlier snapshot changed: %s", got)
	}
}

func TestSnapshot_Totals(t *testing.T) {
	t.Parallel()
	b := New(Options{Cooldown: 30 * time.Second})
	for _, ev := range []Event{
		attachA(), attachB(), attachP(), attachC(),
		AttachENI{ENI: ENI{ID: "eni-x", Device: 5, Excluded: true}, CIDRs: cidrs("10.0.7.1", "10.0.7.16/28")},
		AttachENI{ENI: ENI{ID: "eni-y", Device: 6}, CIDRs: cidrs("10.0.8.1")},
		HoldENI{"eni-y"}, HoldCIDRs{"eni-b", cidrs("10.0.1.11")},
		restore("x", "10.0.7.1"), // on the excluded ENI: not counted
		add("s"), add("t"), del("t"), addPrefix("p", IPv4), addPrefix("q", IPv6),
	} {
		mustApply(t, b, start, ev)
	}
	rows := []struct {
		card int
		kind Kind
		at   time.Duration
		want Totals
	}{
		{0, SecondaryIPs, 0, Totals{Total: 4, Assigned: 1, Cooling: 1, Free: 2}},
		{0, SecondaryIPs, 30 * time.Second, Totals{Total: 4, Assigned: 1, Cooling: 1, Free: 2}},
		{0, SecondaryIPs, 30*time.Second + 1, Totals{Total: 4, Assigned: 1, Free: 3}},
		{0, Prefixes, 0, Totals{Total: 32 + 1<<48, Assigned: 2, Free: 30 + 1<<48, Prefixes: 3, FreePrefixes: 1}},
		{1, SecondaryIPs, 0, Totals{Total: 1, Free: 1}},
		{1, Prefixes, 0, Totals{}},
		{7, Prefixes, 0, Totals{}},
	}
	for _, row := range rows {
		got := b.Snapshot().Totals(row.card, row.kind, start.Add(row.at), 30*time.Second)
		if got != row.want {
			t.Errorf("card %d kind %d after %v: %+v, want %+v", row.card, row.kind, row.at, got, row.want)
		}
	}
}

// Check must detect damage, or every test that relies on it is blind.
func TestCheck_SeesDamage(t *testing.T) {
	t.Parallel()
	damage := map[string]func(*Book){
		"owner lost":      func(b *Book) { delete(b.owners, sandbox("s")) },
		"address lost":    func(b *Book) { delete(b.taken, netip.MustParseAddr("10.0.0.10")) },
		"count":           func(b *Book) { b.eniByID["eni-a"].cidrs[0].assigned++ },
		"ENI count":       func(b *Book) { b.eniByID["eni-a"].assigned-- },
		"held with pods":  func(b *Book) { b.eniByID["eni-a"].held = true },
		"pool lost":       func(b *Book) { b.eniByID["eni-b"].cidrs[0].at = 0 },
		"cooling lost":    func(b *Book) { b.cooling.first.unlink() },
		"order":           func(b *Book) { slices.Reverse(b.enis) },
		"ENI lost":        func(b *Book) { delete(b.eniByID, "eni-b") },
		"CIDR lost":       func(b *Book) { delete(b.cidrs, cidrs("10.0.1.10")[0]) },
		"unplaced lost":   func(b *Book) { b.unplaced = nil },
		"record lost":     func(b *Book) { b.eniByID["eni-a"].cidrs[0].records = nil },
		"stale snapshot":  func(b *Book) { b.eniByID["eni-a"].cidrs[0].records[0].pod.Name = "other" },
		"rests too long":  func(b *Book) { b.now = b.now.Add(time.Hour) },
		"fullness hidden": func(b *Book) { b.eniByID["eni-b"].assigned = 9 },
	}
	for name, spoil := range damage {
		b := New(Options{Cooldown: 30 * time.Second})
		for _, ev := range []Event{attachA(), attachB(), add("s"), add("t"), del("t"), restore("u", "10.9.9.9")} {
			mustApply(t, b, start, ev)
		}
		b.Snapshot()
		if err := b.Check(); err != nil {
			t.Fatalf("before the damage: %v", err)
		}
		spoil(b)
		if b.Check() == nil {
			t.Errorf("%s: not seen", name)
		}
	}
}

// The cost of a step must not grow with the pods on the node. Time is no reliable measure on
// a busy machine; the heights of the heaps bound the number of comparisons.
func TestBook_HeapHeights(t *testing.T) {
	t.Parallel()
	b := benchBook(t, 700)
	h := b.pools[poolKey{0, classOf(SecondaryIPs, IPv4)}]
	if len(h.items) != 1 { // best fit has filled 14 ENIs
		t.Errorf("%d ENIs can give an address, want 1", len(h.items))
	}
	for _, e := range b.enis {
		if n := len(e.pools[0].cidrs.items); n > benchSlots {
			t.Errorf("%d candidates on ENI %s", n, e.ID)
		}
	}
}

// Errors appear in logs, events and summaries, where container IDs do not belong.
func TestErrors_NoContainerID(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 4)
	ids := map[string]Sandbox{"plain": sandbox(long), "network missing": {ContainerID: long, IfName: "eth0"}, "nothing else": {ContainerID: long}}
	address := netip.MustParseAddr("10.0.0.10")
	for name, s := range ids {
		full := []Event{
			Assign{Sandbox: s, Family: IPv4}, Assign{Sandbox: s, Family: 99}, Assign{Sandbox: s, Kind: 99, Family: IPv4}, Assign{Sandbox: s, Card: 7, Family: IPv4},
			Unassign{Sandbox: s, Aliases: []Sandbox{s}}, Revert{Sandbox: s},
			Restore{Sandbox: s}, Restore{Sandbox: s, Address: netip.MustParseAddr("10.0.0.99")}, Restore{Sandbox: s, Address: address},
			Reassign{Assignment: Assignment{Sandbox: s}},
			RemoveCIDRs{ID: "eni-a", CIDRs: cidrs("10.0.0.10")}, HoldENI{ID: "eni-a"}, DetachENI{ID: "eni-a"},
		}
		refused := 0
		for _, before := range [][]Event{{}, {attachA()}, {attachA(), restore("other", "10.0.0.10")}, {attachA(), Restore{Sandbox: s, Address: address}}} {
			for _, ev := range full {
				b := New(Options{})
				for _, first := range before {
					if _, err := b.Apply(start, first); err != nil {
						t.Fatal(err)
					}
				}
				_, err := b.Apply(start, ev)
				if err == nil {
					continue
				}
				refused++
				if strings.Contains(err.Error(), long[:12]) {
					t.Errorf("%s: %T names the container id: %v", name, ev, err)
				}
			}
		}
		if refused < 20 {
			t.Errorf("%s: only %d errors were looked at", name, refused)
		}
	}
	b := New(Options{})
	for _, ev := range []Event{attachA(), Restore{Sandbox: sandbox(long), Address: address}} {
		if _, err := b.Apply(start, ev); err != nil {
			t.Fatal(err)
		}
	}
	clear(b.taken) // errors that Check finds must not have the ID either
	if err := b.Check(); err == nil || strings.Contains(err.Error(), long[:12]) {
		t.Errorf("Check: %v", err)
	}
	if a, b := sandbox(long).String(), sandbox(long+"0").String(); a == b || a != `"aws-cni" "eth0" #`+a[len(a)-8:] {
		t.Errorf("%s and %s", a, b)
	}
}

// attachCards attaches an ENI with a prefix of each family to each of the cards.
func attachCards(tb testing.TB, b *Book, cards int) {
	tb.Helper()
	for card := range cards {
		mustApply(tb, b, start, AttachENI{
			ENI:   ENI{ID: ENIID(fmt.Sprintf("eni-card%d", card)), Card: card, Primary: card == 0, RouteTable: 10000 + 100*card},
			CIDRs: cidrs(fmt.Sprintf("10.%d.0.0/28", card), fmt.Sprintf("2001:db8:%d::/80", card)),
		})
	}
}

// A pod may have an interface on every card, each with its own address; a pod with one
// interface may have it on any card.
func TestBook_Interfaces(t *testing.T) {
	t.Parallel()
	b := New(Options{Cooldown: 30 * time.Second})
	attachCards(t, b, 3)
	multi, single := sandbox("multi"), sandbox("single")
	for card := range 3 {
		s := multi
		s.Interface = card
		ch := mustApply(t, b, start, Assign{Sandbox: s, Card: card, Kind: Prefixes, Family: IPv6})
		if a := ch.Assigned[0]; a.Card != card || a.Sandbox != s || ch.Existing {
			t.Errorf("card %d: %+v", card, a)
		}
	}
	mustApply(t, b, start, Assign{Sandbox: single, Card: 2, Kind: Prefixes, Family: IPv6})
	if got := join(b.Interfaces(multi)); got != "2001:db8:: 2001:db8:1:: 2001:db8:2::" {
		t.Errorf("interfaces of the multi-card pod: %s", got)
	}
	if got := join(b.Interfaces(single)); got != "2001:db8:2::1" {
		t.Errorf("interfaces of the pod on the last card: %s", got)
	}
	if got := b.Interfaces(sandbox("nobody")); got != nil {
		t.Errorf("interfaces of nobody: %v", got)
	}
	for i, a := range b.Interfaces(multi) {
		if a.Sandbox.Interface != i {
			t.Errorf("interface %d in place %d", a.Sandbox.Interface, i)
		}
		mustApply(t, b, start, Unassign{Sandbox: a.Sandbox})
	}
	if got := b.Interfaces(multi); got != nil {
		t.Errorf("after its end the pod has %v", got)
	}
	for _, bad := range []Event{
		Assign{Sandbox: Sandbox{Network: "n", ContainerID: "c", IfName: "i", Interface: 1}, Card: 0, Family: IPv4},
		Assign{Sandbox: Sandbox{Network: "n", ContainerID: "c", IfName: "i", Interface: -1}, Card: -1, Family: IPv4},
		Restore{Sandbox: Sandbox{Network: "n", ContainerID: "c", IfName: "i", Interface: 1 << 40}, Address: netip.MustParseAddr("10.0.0.3")},
	} {
		if _, err := b.Apply(start, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

// If the last card has no address to give, the addresses of the others are reverted: those
// in cooldown keep their original end.
func TestBook_RevertOfSeveralCards(t *testing.T) {
	t.Parallel()
	for _, family := range []Family{IPv4, IPv6} {
		b := New(Options{Cooldown: 30 * time.Second})
		attachCards(t, b, 2)
		first := Assign{Sandbox: sandbox("first"), Card: 1, Kind: Prefixes, Family: family}
		mustApply(t, b, start, first)
		mustApply(t, b, start, Unassign{Sandbox: first.Sandbox})
		now := start.Add(time.Minute)
		resting := start.Add(29 * time.Second) // shows addresses in cooldown since start
		before := render(b.Snapshot(), resting, b.Cooldown())
		var done []Sandbox
		for card := range 3 { // card 2 has no ENI
			s := sandbox("multi")
			s.Interface = card
			_, err := b.Apply(now, Assign{Sandbox: s, Card: card, Kind: Prefixes, Family: family})
			if (err == nil) != (card < 2) || err != nil && !errors.Is(err, ErrNoAddress) {
				t.Fatalf("card %d: %v", card, err)
			}
			if err == nil {
				done = append(done, s)
			}
		}
		for _, s := range done {
			mustApply(t, b, now, Revert{Sandbox: s})
		}
		if got := render(b.Snapshot(), resting, b.Cooldown()); got != before || b.Interfaces(sandbox("multi")) != nil {
			t.Errorf("family %d: the book is\n%s\nit was\n%s", family, got, before)
		}
		if err := b.Check(); err != nil {
			t.Error(err)
		}
	}
}
