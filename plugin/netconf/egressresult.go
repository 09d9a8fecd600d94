package netconf

import (
	"errors"
	"net/netip"
	"strconv"
)

// Result is a plugin's complete result, in any version of the specification. Fields that
// the version does not have are unset.
type Result struct {
	Version    string // as given; never empty
	Interfaces []ResultInterface
	IPs        []ResultIP
	Routes     []ResultRoute
	DNS        ResultDNS
	IP4, IP6   *ResultOldIP // before 0.3.0, instead of the first three
}

// ResultInterface is an entry of "interfaces".
type ResultInterface struct {
	Name, MAC, Sandbox string
	MTU                int    // from 1.1.0 on, as are the next two; 1.0.0 passes them on
	SocketPath, PCIID  string //
}

// ResultIP is an entry of "ips".
type ResultIP struct {
	Version   string // "4" or "6"; before 1.0.0
	Interface *int
	Address   netip.Prefix
	Gateway   netip.Addr // invalid if none
}

// ResultRoute is an entry of "routes".
type ResultRoute struct {
	Dst                   netip.Prefix
	GW                    netip.Addr // invalid if none
	MTU, AdvMSS, Priority int
	Table, Scope          *int
}

// ResultDNS is "dns".
type ResultDNS struct {
	Nameservers, Search, Options []string
	Domain                       string
}

// Empty reports whether no field is set.
func (d *ResultDNS) Empty() bool {
	return len(d.Nameservers) == 0 && d.Domain == "" && len(d.Search) == 0 && len(d.Options) == 0
}

// ResultOldIP is "ip4" or "ip6".
type ResultOldIP struct {
	IP      netip.Prefix
	Gateway netip.Addr
	Routes  []ResultRoute
}

// Generation groups the versions whose results have the same form.
func Generation(version string) int {
	switch version {
	case "0.1.0", "0.2.0":
		return 0
	case "0.3.0", "0.3.1", "0.4.0":
		return 4
	case "1.0.0", "1.1.0":
		return 10
	}
	return -1
}

// ParseResult parses a result that belongs to a configuration of version confVersion. A
// result without a version has the configuration's. A result of another form is refused,
// as by the CNI library.
func ParseResult(raw []byte, confVersion string) (*Result, error) {
	if err := checkSyntax(raw); err != nil {
		return nil, err
	}
	d := fullResultDecoder{strictDecoder: strictDecoder{cursor: cursor{in: raw}}, generation: Generation(confVersion)}
	if d.generation < 0 {
		return nil, errors.New("unsupported CNI result version " + strconv.Quote(confVersion))
	}
	d.result()
	if d.err != nil {
		return nil, d.err
	}
	if d.out.Version == "" {
		d.out.Version = confVersion
	}
	if Generation(d.out.Version) != d.generation {
		return nil, errors.New("result type supports " + generationText(d.generation) + " but unmarshalled CNIVersion is " + strconv.Quote(d.out.Version))
	}
	return &d.out, nil
}

func generationText(g int) string {
	switch g {
	case 0:
		return "[ 0.1.0 0.2.0]"
	case 4:
		return "[0.3.0 0.3.1 0.4.0]"
	}
	return "[1.0.0 1.1.0]"
}

type fullResultDecoder struct {
	strictDecoder
	generation int
	out        Result
}

func (d *fullResultDecoder) result() {
	if !d.want("object", "result") {
		return
	}
	d.object(func(key string) {
		switch i := keyIndex(key, []string{"cniVersion", "dns", "interfaces", "ips", "routes", "ip4", "ip6"}); {
		case i == 0:
			d.textInto(&d.out.Version, key)
		case i == 1:
			d.dns()
		case i == 2 && d.generation > 0:
			d.out.Interfaces = nil // of equal keys, the last one counts
			d.list(key, func() { d.out.Interfaces = append(d.out.Interfaces, d.iface()) })
		case i == 3 && d.generation > 0:
			d.out.IPs = nil
			d.list(key, func() { d.out.IPs = append(d.out.IPs, d.ip()) })
		case i == 4 && d.generation > 0:
			d.out.Routes = d.routes(key)
		case i == 5 && d.generation == 0:
			d.out.IP4 = d.oldIP(key)
		case i == 6 && d.generation == 0:
			d.out.IP6 = d.oldIP(key)
		default:
			d.raw()
		}
	})
}

// list reads an array whose elements are objects.
func (d *fullResultDecoder) list(what string, element func()) {
	if !d.want("array", what) {
		return
	}
	d.array(func() {
		if d.kind() != "object" {
			d.fail(what + " has an element that is " + d.kind() + ", not object")
			d.raw()
			return
		}
		element()
	})
}

func (d *fullResultDecoder) textInto(into *string, what string) {
	if d.want("string", what) {
		*into = d.text()
	}
}

func (d *fullResultDecoder) numberInto(into *int, what string) {
	if !d.want("number", what) {
		return
	}
	// The library parses it as a floating-point number.
	f, err := strconv.ParseFloat(string(d.raw()), 64)
	if err != nil || f != float64(int64(f)) || f >= 1<<63 || f < -1<<63 {
		d.fail(what + " is not an integer")
		return
	}
	*into = int(f)
}

func (d *fullResultDecoder) pointerInto(into **int, what string) {
	if d.kind() == "null" {
		*into = nil
		d.raw()
		return
	}
	n := 0
	d.numberInto(&n, what)
	*into = &n
}

func (d *fullResultDecoder) iface() (out ResultInterface) {
	d.object(func(key string) {
		switch i := keyIndex(key, []string{"name", "mac", "sandbox", "mtu", "socketPath", "pciID"}); {
		case i == 0:
			d.textInto(&out.Name, key)
		case i == 1:
			d.textInto(&out.MAC, key)
		case i == 2:
			d.textInto(&out.Sandbox, key)
		case i == 3 && d.generation > 4:
			d.numberInto(&out.MTU, key)
		case i == 4 && d.generation > 4:
			d.textInto(&out.SocketPath, key)
		case i == 5 && d.generation > 4:
			d.textInto(&out.PCIID, key)
		default:
			d.raw()
		}
	})
	return out
}

func (d *fullResultDecoder) ip() (out ResultIP) {
	d.object(func(key string) {
		switch i := keyIndex(key, []string{"interface", "address", "gateway", "version"}); {
		case i == 0:
			d.pointerInto(&out.Interface, key)
		case i == 1:
			d.prefixInto(&out.Address, key)
		case i == 2:
			d.addrInto(&out.Gateway, key)
		case i == 3 && d.generation == 4:
			d.textInto(&out.Version, key)
		default:
			d.raw()
		}
	})
	if !out.Address.IsValid() {
		d.fail("ips has an element without an address")
	}
	return out
}

func (d *fullResultDecoder) routes(what string) (out []ResultRoute) {
	d.list(what, func() {
		var r ResultRoute
		d.object(func(key string) {
			switch keyIndex(key, []string{"dst", "gw", "mtu", "advmss", "priority", "table", "scope"}) {
			case 0:
				d.prefixInto(&r.Dst, key)
			case 1:
				d.addrInto(&r.GW, key)
			case 2:
				d.numberInto(&r.MTU, key)
			case 3:
				d.numberInto(&r.AdvMSS, key)
			case 4:
				d.numberInto(&r.Priority, key)
			case 5:
				d.pointerInto(&r.Table, key)
			case 6:
				d.pointerInto(&r.Scope, key)
			default:
				d.raw()
			}
		})
		if !r.Dst.IsValid() {
			d.fail(what + " has an element without dst")
		}
		out = append(out, r)
	})
	return out
}

func (d *fullResultDecoder) oldIP(what string) *ResultOldIP {
	if d.kind() == "null" {
		d.raw()
		return nil
	}
	var out ResultOldIP
	if d.want("object", what) {
		d.object(func(key string) {
			switch keyIndex(key, []string{"ip", "gateway", "routes"}) {
			case 0:
				d.prefixInto(&out.IP, key)
			case 1:
				d.addrInto(&out.Gateway, key)
			case 2:
				out.Routes = d.routes(key)
			default:
				d.raw()
			}
		})
	}
	if !out.IP.IsValid() {
		d.fail(what + " has no ip")
	}
	return &out
}

func (d *fullResultDecoder) dns() {
	if !d.want("object", "dns") {
		return
	}
	d.object(func(key string) {
		switch keyIndex(key, []string{"nameservers", "domain", "search", "options"}) {
		case 0:
			d.textsInto(&d.out.DNS.Nameservers, key)
		case 1:
			d.textInto(&d.out.DNS.Domain, key)
		case 2:
			d.textsInto(&d.out.DNS.Search, key)
		case 3:
			d.textsInto(&d.out.DNS.Options, key)
		default:
			d.raw()
		}
	})
}

func (d *fullResultDecoder) textsInto(into *[]string, what string) {
	*into = nil
	if !d.want("array", what) {
		return
	}
	d.array(func() {
		text := ""
		d.textInto(&text, what)
		*into = append(*into, text)
	})
}

// prefixInto reads an address with its mask. An IPv4 address in IPv6 form becomes an IPv4
// address, as in package net.
func (d *fullResultDecoder) prefixInto(into *netip.Prefix, what string) {
	text := ""
	if !d.want("string", what) {
		return
	}
	text = d.text()
	p, err := netip.ParsePrefix(text)
	if err != nil {
		d.fail("invalid CIDR address: " + text)
		return
	}
	if p.Addr().Is4In6() {
		p = netip.PrefixFrom(p.Addr().Unmap(), max(p.Bits()-96, 0))
	}
	*into = p
}

func (d *fullResultDecoder) addrInto(into *netip.Addr, what string) {
	*into = netip.Addr{}
	if !d.want("string", what) {
		return
	}
	text := d.text()
	if text == "" {
		return
	}
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		d.fail("invalid IP address: " + text)
		return
	}
	*into = a.Unmap()
}
