package vpc

import (
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
)

// podResult is what an ADD made.
type podResult struct {
	nics    []nic
	netns   string
	gateway netip.Addr // of the subnet of a branch ENI; zero: none
	dummy   resultInterface
}

// nic is one interface of a pod.
type nic struct {
	hostLink string
	podLink  string
	address  netip.Addr
	table    int
}

// resultInterface is an entry of "interfaces". In ours the members carry what DEL
// needs, across upgrades and downgrades: mac of the container entry is the route
// table, mac of the dummy the VLAN id (0: no branch ENI), sandbox of the dummy the
// device number of the first interface (empty with a branch ENI).
type resultInterface struct{ name, mac, sandbox string }

// newPodResult is the result of an ordinary pod whose first address is of an ENI with a
// device number.
func newPodResult(p *plan, netns string) *podResult {
	r := &podResult{nics: p.nics, netns: netns, dummy: resultInterface{name: netnames.DummyPrefix + p.hash, mac: "0", sandbox: strconv.Itoa(p.device)}}
	if p.branch != nil {
		r.gateway = p.branch.Gateway
		r.dummy.mac, r.dummy.sandbox = strconv.Itoa(p.branch.VLAN), ""
	}
	return r
}

// each calls f for the interfaces in the order of the original.
func (r *podResult) each(f func(resultInterface)) {
	for i := range r.nics {
		n := &r.nics[i]
		f(resultInterface{name: n.hostLink})
		f(resultInterface{name: n.podLink, mac: strconv.Itoa(n.table), sandbox: r.netns})
	}
	f(r.dummy)
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

// appendOldest has room for one address of each family.
func (r *podResult) appendOldest(o *object) {
	for _, family := range [...]struct {
		key string
		is4 bool
	}{{"ip4", true}, {"ip6", false}} {
		for i := range r.nics {
			if r.nics[i].address.Is4() != family.is4 {
				continue
			}
			o.key(family.key)
			o.open('{')
			o.text("ip", addressText(r.nics[i].address))
			r.appendGateway(o)
			o.close('}')
			break
		}
	}
	o.emptyDNS()
}

func (r *podResult) appendGateway(o *object) {
	if r.gateway.IsValid() {
		o.text("gateway", r.gateway.String())
	}
}

func (r *podResult) append04(o *object) {
	o.key("interfaces")
	o.open('[')
	r.each(func(i resultInterface) {
		o.newline()
		o.open('{')
		o.text("name", i.name)
		o.textIf("mac", i.mac)
		o.textIf("sandbox", i.sandbox)
		o.close('}')
	})
	o.close(']')
	o.key("ips")
	o.open('[')
	for i := range r.nics {
		version := "4"
		if r.nics[i].address.Is6() {
			version = "6"
		}
		o.newline()
		o.open('{')
		o.text("version", version)
		o.number("interface", 2*i+1)
		o.text("address", addressText(r.nics[i].address))
		r.appendGateway(o)
		o.close('}')
	}
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
	r.each(func(i resultInterface) {
		o.newline()
		o.open('{')
		o.textIf("mac", i.mac)
		o.text("name", i.name)
		o.textIf("sandbox", i.sandbox)
		o.close('}')
	})
	o.close(']')
	o.key("ips")
	o.open('[')
	for i := range r.nics {
		o.newline()
		o.open('{')
		o.text("address", addressText(r.nics[i].address))
		r.appendGateway(o)
		o.number("interface", 2*i+1)
		o.close('}')
	}
	o.close(']')
}
