package egress

import (
	"errors"

	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// withInterfaces is a result with interfaces behind its own, in a version of the
// specification, by the way of the CNI library: through the newest form and back.
func withInterfaces(r *netconf.Result, version string, more ...netconf.ResultInterface) ([]byte, error) {
	now := *r
	for _, old := range []*netconf.ResultOldIP{r.IP4, r.IP6} {
		if old != nil {
			now.IPs = append(now.IPs, netconf.ResultIP{Address: old.IP, Gateway: old.Gateway})
			now.Routes = append(now.Routes, old.Routes...)
		}
	}
	now.IP4, now.IP6 = nil, nil
	now.Interfaces = append(append([]netconf.ResultInterface(nil), r.Interfaces...), more...)
	now.IPs = append([]netconf.ResultIP(nil), now.IPs...)
	for i := range now.IPs {
		now.IPs[i].Version = "6"
		if now.IPs[i].Address.Addr().Is4() {
			now.IPs[i].Version = "4"
		}
	}
	if netconf.Generation(version) == 0 {
		if err := oldest(&now); err != nil {
			return nil, err
		}
	}
	return skel.PrintResult(&now, version), nil
}

// oldest puts a result into the form before 0.3.0, which has one address a family.
func oldest(r *netconf.Result) error {
	for _, ip := range r.IPs {
		into := &r.IP6
		if ip.Version == "4" {
			into = &r.IP4
		}
		if *into == nil {
			*into = &netconf.ResultOldIP{IP: ip.Address, Gateway: ip.Gateway}
		}
	}
	if r.IP4 == nil && r.IP6 == nil {
		return errors.New("cannot convert: no valid IP addresses")
	}
	for _, route := range r.Routes {
		into := r.IP6
		if route.Dst.Addr().Is4() {
			into = r.IP4
		}
		if into != nil {
			into.Routes = append(into.Routes, netconf.ResultRoute{Dst: route.Dst, GW: route.GW})
		}
	}
	return nil
}
