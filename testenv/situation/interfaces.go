package situation

import (
	"net/netip"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"cnictl/doctor/evidence"
)

// dropper removes an interface, a prefix or a secondary address from a list of interfaces. It
// reports whether it found any.
type dropper func(eni string, cidr netip.Prefix, address netip.Addr) bool

// interfaceList returns the dropper for one of the three lists of interfaces; nil for other lists.
func interfaceList(list reflect.Value) dropper {
	switch l := list.Addr().Interface().(type) {
	case *[]evidence.ENI:
		return func(eni string, cidr netip.Prefix, address netip.Addr) (found bool) {
			*l, found = cut(*l, func(i evidence.ENI) bool { return eni != "" && i.ID == eni })
			for n := range *l {
				i := &(*l)[n]
				var prefix, ip bool
				i.Prefixes, prefix = cut(i.Prefixes, func(p evidence.Prefix) bool { return p.CIDR == cidr })
				i.IPs, ip = cut(i.IPs, func(a evidence.Address) bool { return a.Address == address })
				found = found || prefix || ip
			}
			return found
		}
	case *[]evidence.IMDSInterface:
		return func(eni string, cidr netip.Prefix, address netip.Addr) (found bool) {
			*l, found = cut(*l, func(i evidence.IMDSInterface) bool { return eni != "" && i.ID == eni })
			for n := range *l {
				found = dropFrom(&(*l)[n].IPs, &(*l)[n].Prefixes, cidr, address) || found
			}
			return found
		}
	case *[]evidence.Interface:
		return func(eni string, cidr netip.Prefix, address netip.Addr) (found bool) {
			*l, found = cut(*l, func(i evidence.Interface) bool { return eni != "" && i.ID == eni })
			for n := range *l {
				found = dropFrom(&(*l)[n].IPs, &(*l)[n].Prefixes, cidr, address) || found
			}
			return found
		}
	}
	return nil
}

func dropFrom(ips *[]netip.Addr, prefixes *[]netip.Prefix, cidr netip.Prefix, address netip.Addr) bool {
	var prefix, ip bool
	*prefixes, prefix = cut(*prefixes, func(p netip.Prefix) bool { return p == cidr })
	*ips, ip = cut(*ips, func(a netip.Addr) bool { return a == address })
	return prefix || ip
}

// cut returns the list without the matching entries, and whether any matched.
func cut[T any](list []T, match func(T) bool) ([]T, bool) {
	out := slices.DeleteFunc(slices.Clone(list), match)
	return out, len(out) < len(list)
}

// withoutInterface applies an item of `without` to a list of interfaces.
func (d decoder) withoutInterface(node *yaml.Node, drop dropper, path string) error {
	var item struct {
		ENI     string       `json:"eni"`
		CIDR    netip.Prefix `json:"cidr"`
		Address netip.Addr   `json:"address"`
	}
	if err := d.apply(node, reflect.ValueOf(&item).Elem(), path); err != nil {
		return err
	}
	if len(node.Content) != 2 {
		return refuse(node, path, "want one of {eni: ID}, {cidr: CIDR}, {address: ADDRESS}")
	}
	if !drop(item.ENI, item.CIDR, item.Address) {
		return refuse(node, path, "no entry matches")
	}
	return nil
}

// held holds the addresses of an interface before `with` is merged into it, which adds to them.
type held struct{ ips, prefixes reflect.Value }

func addressesOf(entry reflect.Value) held {
	switch entry.Interface().(type) {
	case evidence.ENI, evidence.IMDSInterface, evidence.Interface:
		return held{reflect.ValueOf(entry.FieldByName("IPs").Interface()), reflect.ValueOf(entry.FieldByName("Prefixes").Interface())}
	}
	return held{}
}

// keep inserts the earlier addresses of the interface before those from `with`.
func (h held) keep(entry reflect.Value) {
	if !h.ips.IsValid() {
		return
	}
	for _, l := range []struct {
		had reflect.Value
		now reflect.Value
	}{{h.ips, entry.FieldByName("IPs")}, {h.prefixes, entry.FieldByName("Prefixes")}} {
		if l.now.Pointer() != l.had.Pointer() || l.now.Len() != l.had.Len() {
			l.now.Set(reflect.AppendSlice(l.had, l.now))
		}
	}
}
