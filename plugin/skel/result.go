package skel

import (
	"net/netip"

	"cnictl/plugin/netconf"
)

// PrintResult prints a result as the CNI library does: up to 0.4.0, members are in the
// order of declaration and dns is printed even if empty; from 1.0.0 on, members are sorted
// by name.
func PrintResult(r *netconf.Result, version string) []byte {
	o := &Object{}
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

func appendOld(o *Object, key string, ip *netconf.ResultOldIP) {
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

func append4(o *Object, r *netconf.Result) {
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

func append10(o *Object, r *netconf.Result) {
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

func appendRoutes(o *Object, routes []netconf.ResultRoute, byName bool) {
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

func appendDNS(o *Object, dns *netconf.ResultDNS, byName bool) {
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

// list writes a list of objects unless it is empty.
func list[T any](o *Object, key string, items []T, each func(T)) {
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

func addrIf(o *Object, key string, a netip.Addr) {
	if a.IsValid() {
		o.Text(key, a.String())
	}
}

func pointerIf(o *Object, key string, n *int) {
	if n != nil {
		o.Number(key, *n)
	}
}
