package egress

import (
	"errors"
	"net/netip"

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
	return printResult(&now, version), nil
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

// printResult prints a result as the CNI library does: members in the order of
// declaration up to 0.4.0 and by name from 1.0.0 on, and a dns up to 0.4.0 even if it
// is empty.
func printResult(r *netconf.Result, version string) []byte {
	o := &skel.Object{}
	o.Open('{')
	o.Text("cniVersion", version)
	switch netconf.Generation(version) {
	case 0:
		appendOld(o, "ip4", r.IP4)
		appendOld(o, "ip6", r.IP6)
		appendDNS(o, &r.DNS, false)
	case 4:
		append4(o, r)
		appendDNS(o, &r.DNS, false)
	default:
		if !r.DNS.Empty() {
			appendDNS(o, &r.DNS, true)
		}
		append10(o, r)
	}
	o.Close('}')
	return o.Bytes()
}

func appendOld(o *skel.Object, key string, ip *netconf.ResultOldIP) {
	if ip == nil {
		return
	}
	o.Key(key)
	o.Open('{')
	o.Text("ip", ip.IP.String())
	addrIf(o, "gateway", ip.Gateway)
	appendRoutes(o, ip.Routes, false)
	o.Close('}')
}

func append4(o *skel.Object, r *netconf.Result) {
	list(o, "interfaces", r.Interfaces, func(i netconf.ResultInterface) {
		o.Text("name", i.Name)
		o.TextIf("mac", i.MAC)
		o.TextIf("sandbox", i.Sandbox)
	})
	list(o, "ips", r.IPs, func(ip netconf.ResultIP) {
		o.Text("version", ip.Version)
		pointerIf(o, "interface", ip.Interface)
		o.Text("address", ip.Address.String())
		addrIf(o, "gateway", ip.Gateway)
	})
	appendRoutes(o, r.Routes, false)
}

func append10(o *skel.Object, r *netconf.Result) {
	list(o, "interfaces", r.Interfaces, func(i netconf.ResultInterface) {
		o.TextIf("mac", i.MAC)
		o.NumberIf("mtu", i.MTU)
		o.Text("name", i.Name)
		o.TextIf("pciID", i.PCIID)
		o.TextIf("sandbox", i.Sandbox)
		o.TextIf("socketPath", i.SocketPath)
	})
	list(o, "ips", r.IPs, func(ip netconf.ResultIP) {
		o.Text("address", ip.Address.String())
		addrIf(o, "gateway", ip.Gateway)
		pointerIf(o, "interface", ip.Interface)
	})
	appendRoutes(o, r.Routes, true)
}

func appendRoutes(o *skel.Object, routes []netconf.ResultRoute, byName bool) {
	list(o, "routes", routes, func(r netconf.ResultRoute) {
		if byName {
			o.NumberIf("advmss", r.AdvMSS)
			o.Text("dst", r.Dst.String())
			addrIf(o, "gw", r.GW)
			o.NumberIf("mtu", r.MTU)
			o.NumberIf("priority", r.Priority)
			pointerIf(o, "scope", r.Scope)
			pointerIf(o, "table", r.Table)
			return
		}
		o.Text("dst", r.Dst.String())
		addrIf(o, "gw", r.GW)
		o.NumberIf("mtu", r.MTU)
		o.NumberIf("advmss", r.AdvMSS)
		o.NumberIf("priority", r.Priority)
		pointerIf(o, "table", r.Table)
		pointerIf(o, "scope", r.Scope)
	})
}

func appendDNS(o *skel.Object, dns *netconf.ResultDNS, byName bool) {
	o.Key("dns")
	o.Open('{')
	if byName {
		o.TextIf("domain", dns.Domain)
	}
	o.TextsIf("nameservers", dns.Nameservers)
	if !byName {
		o.TextIf("domain", dns.Domain)
		o.TextsIf("search", dns.Search)
	}
	o.TextsIf("options", dns.Options)
	if byName {
		o.TextsIf("search", dns.Search)
	}
	o.Close('}')
}

// list leaves out an empty one.
func list[T any](o *skel.Object, key string, items []T, each func(T)) {
	if len(items) == 0 {
		return
	}
	o.Key(key)
	o.Open('[')
	for _, item := range items {
		o.Item()
		o.Open('{')
		each(item)
		o.Close('}')
	}
	o.Close(']')
}

func addrIf(o *skel.Object, key string, a netip.Addr) {
	if a.IsValid() {
		o.Text(key, a.String())
	}
}

func pointerIf(o *skel.Object, key string, n *int) {
	if n != nil {
		o.Number(key, *n)
	}
}
