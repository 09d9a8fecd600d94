package vpc

import (
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
)

// podResult is what an ADD made: one pod with one interface.
type podResult struct {
	hostLink string
	podLink  string
	dummy    string
	netns    string
	address  netip.Addr
	table    int
	device   int
}

// resultInterface is an entry of "interfaces". In ours the members carry what DEL
// needs, across upgrades and downgrades: mac of the container entry is the route
// table, mac of the dummy the VLAN id (0: no branch ENI), sandbox of the dummy the
// device number.
type resultInterface struct{ name, mac, sandbox string }

func (r *podResult) interfaces() [3]resultInterface {
	return [3]resultInterface{
		{name: r.hostLink},
		{name: r.podLink, mac: strconv.Itoa(r.table), sandbox: r.netns},
		{name: r.dummy, mac: "0", sandbox: strconv.Itoa(r.device)},
	}
}

func newPodResult(p *podNames, netns string, device int) *podResult {
	return &podResult{
		hostLink: p.hostLink, podLink: p.podLink, dummy: netnames.DummyPrefix + p.hash,
		netns: netns, address: p.address, table: p.table, device: device,
	}
}

// JSON is the result in a version of the specification, byte for byte what the CNI
// library prints: it orders members by declaration up to 0.4.0 and by name from
// 1.0.0 on, and has an empty dns up to 0.4.0.
func (r *podResult) JSON(version string) []byte {
	var o object
	o.open('{')
	o.text("cniVersion", version)
	switch version {
	case "0.1.0", "0.2.0":
		r.appendOldest(&o)
	case "0.3.0", "0.3.1", "0.4.0":
		r.append04(&o)
	default:
		r.append1x(&o)
	}
	o.close('}')
	return o.b
}

func (r *podResult) cidr() string { return addressText(r.address) }

func (r *podResult) appendOldest(o *object) {
	if r.address.Is4() {
		o.key("ip4")
	} else {
		o.key("ip6")
	}
	o.open('{')
	o.text("ip", r.cidr())
	o.close('}')
	o.emptyDNS()
}

func (r *podResult) append04(o *object) {
	o.key("interfaces")
	o.open('[')
	for _, i := range r.interfaces() {
		o.newline()
		o.open('{')
		o.text("name", i.name)
		o.textIf("mac", i.mac)
		o.textIf("sandbox", i.sandbox)
		o.close('}')
	}
	o.close(']')
	o.key("ips")
	o.open('[')
	o.newline()
	o.open('{')
	if r.address.Is4() {
		o.text("version", "4")
	} else {
		o.text("version", "6")
	}
	o.number("interface", 1)
	o.text("address", r.cidr())
	o.close('}')
	o.close(']')
	o.emptyDNS()
}

func (o *object) emptyDNS() {
	o.key("dns")
	o.open('{')
	o.close('}')
}

func (r *podResult) append1x(o *object) {
	o.key("interfaces")
	o.open('[')
	for _, i := range r.interfaces() {
		o.newline()
		o.open('{')
		o.textIf("mac", i.mac)
		o.text("name", i.name)
		o.textIf("sandbox", i.sandbox)
		o.close('}')
	}
	o.close(']')
	o.key("ips")
	o.open('[')
	o.newline()
	o.open('{')
	o.text("address", r.cidr())
	o.number("interface", 1)
	o.close('}')
	o.close(']')
}
