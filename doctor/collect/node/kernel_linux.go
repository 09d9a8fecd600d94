package node

import (
	"fmt"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"cnictl/daemon/netstate"
	"cnictl/daemon/rtnl"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
)

// ask queries the kernel over a new socket.
func ask[T any](what func(*rtnl.Conn) (T, error)) (T, error) {
	conn, err := rtnl.Open()
	if err != nil {
		var none T
		return none, err
	}
	defer conn.Close()
	return what(conn)
}

func listLinks(conn *rtnl.Conn) ([]evidence.Link, error) {
	list, err := conn.Links()
	if err != nil {
		return nil, err
	}
	all, err := conn.Addresses(unix.AF_INET)
	if err != nil {
		return nil, err
	}
	addresses := map[int32][]netip.Prefix{}
	for _, a := range all {
		if reading.IsLinkAddress(a.Prefix) {
			addresses[a.Link] = append(addresses[a.Link], a.Prefix)
		}
	}
	names := linkNames(list)
	out := []evidence.Link{}
	for _, l := range list {
		up := l.Flags&unix.IFF_UP != 0
		link := evidence.Link{Name: l.Name, Kind: l.Kind, MTU: &l.MTU, Up: &up, Addresses: addresses[l.Index]}
		if l.MAC != (netstate.MAC{}) {
			link.MAC = l.MAC.String()
		}
		switch l.Kind {
		case "":
			link.Kind = "device"
		case "vlan":
			link.VLAN, link.Parent = &l.VLAN, names[l.Parent]
		}
		out = append(out, link)
	}
	return out, nil
}

// linkNames returns the names of links by their index.
func linkNames(list []netstate.Link) map[int32]string {
	names := make(map[int32]string, len(list))
	for _, l := range list {
		names[l.Index] = l.Name
	}
	return names
}

// families are the address families.
var families = map[int]uint8{4: unix.AF_INET, 6: unix.AF_INET6}

// listRules omits rules with conditions that evidence has no member for: none belongs to the CNI,
// and they would look as if they applied to all packets.
func listRules(conn *rtnl.Conn) ([]evidence.Rule, error) {
	out := []evidence.Rule{}
	for _, family := range []int{4, 6} {
		list, err := conn.Rules(families[family])
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if r.Other || r.Protocol != 0 {
				continue
			}
			rule := evidence.Rule{Family: family, Priority: r.Priority, From: r.From, To: r.To, IIF: r.InLink, Table: tableName(r.Table)}
			if r.Mark != 0 || r.Mask != 0 {
				rule.FWMark = fmt.Sprintf("%#x/%#x", r.Mark, r.Mask)
			}
			out = append(out, rule)
		}
	}
	return out, nil
}

func tableName(n int) evidence.Table {
	switch n {
	case unix.RT_TABLE_MAIN:
		return "main"
	case unix.RT_TABLE_LOCAL:
		return "local"
	case unix.RT_TABLE_DEFAULT:
		return "default"
	}
	return evidence.Table(strconv.Itoa(n))
}

func listRoutes(conn *rtnl.Conn) ([]evidence.Route, error) {
	list, err := conn.Links()
	if err != nil {
		return nil, err
	}
	names := linkNames(list)
	out := []evidence.Route{}
	for _, family := range []int{4, 6} {
		list, err := conn.AllRoutes(families[family])
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if r.Dst.Addr().Is6() && r.Dst.Addr().IsLinkLocalUnicast() {
				continue // every link has it
			}
			out = append(out, evidence.Route{Family: family, Table: r.Table, To: destination(r.Dst), Via: r.Gateway, Dev: names[r.Link]})
		}
	}
	return out, nil
}

func destination(p netip.Prefix) string {
	if p.Bits() == 0 {
		return "default"
	}
	return p.String()
}
