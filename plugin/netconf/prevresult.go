package netconf

import (
	"net/netip"
	"strconv"
)

// PrevResult is the part that DEL needs of the result that ADD printed, in any version.
type PrevResult struct {
	Interfaces []Interface `json:"interfaces"`
	IPs        []IP        `json:"ips"`
}

// Interface is an interface of a result. In ours, mac and sandbox have other meanings: see
// plugin/vpc.
type Interface struct {
	Name    string `json:"name"`
	MAC     string `json:"mac"`
	Sandbox string `json:"sandbox"`
}

// IP is an address of a result.
type IP struct {
	Interface *int   `json:"interface"` // index into Interfaces
	Address   string `json:"address"`   // with its prefix length
	Gateway   string `json:"gateway"`   // only of pods with branch ENIs
}

// PrevResult parses the previous result; nil without one. Versions before 0.3.0 have no
// interfaces, so their results appear empty.
func (c *NetConf) PrevResult() (*PrevResult, error) {
	if len(c.RawPrevResult) == 0 || string(c.RawPrevResult) == "null" {
		return nil, nil
	}
	d := resultDecoder{strictDecoder: strictDecoder{cursor: cursor{in: c.RawPrevResult}}}
	if err := checkSyntax(c.RawPrevResult); err != nil {
		return nil, wrap("could not parse prevResult: ", err)
	}
	d.result()
	if d.err != nil {
		return nil, wrap("could not parse prevResult: ", d.err)
	}
	return &d.out, nil
}

type resultDecoder struct {
	strictDecoder
	out PrevResult
}

func (d *resultDecoder) result() {
	if !d.want("object", "result") {
		return
	}
	d.object(func(key string) {
		switch keyIndex(key, []string{"interfaces", "ips"}) {
		case 0:
			d.out.Interfaces = nil // of equal keys, the last one counts
			if d.want("array", "interfaces") {
				d.array(d.iface)
			}
		case 1:
			d.out.IPs = nil
			if d.want("array", "ips") {
				d.array(d.ip)
			}
		default:
			d.raw()
		}
	})
}

func (d *resultDecoder) iface() {
	var out Interface
	texts := [...]*string{&out.Name, &out.MAC, &out.Sandbox}
	if d.want("object", "interface") {
		d.object(func(key string) {
			if i := keyIndex(key, []string{"name", "mac", "sandbox"}); i < 0 {
				d.raw()
			} else if d.want("string", key) {
				*texts[i] = d.text()
			}
		})
	}
	d.out.Interfaces = append(d.out.Interfaces, out)
}

func (d *resultDecoder) ip() {
	var out IP
	if d.want("object", "ip") {
		d.object(func(key string) {
			switch keyIndex(key, []string{"interface", "address", "gateway"}) {
			case 0:
				out.Interface = nil
				if d.want("number", key) {
					n, err := strconv.Atoi(string(d.raw()))
					if err != nil {
						d.fail(key + " is not an integer")
					}
					out.Interface = &n
				}
			case 1:
				if d.want("string", key) {
					out.Address = d.text()
				}
			case 2:
				if d.want("string", key) {
					out.Gateway = d.text()
				}
			default:
				d.raw()
			}
		})
	}
	if _, err := netip.ParsePrefix(out.Address); err != nil {
		d.fail("invalid CIDR address: " + out.Address)
	}
	d.out.IPs = append(d.out.IPs, out)
}

// Named returns the index of the interface with that name, −1 if none. Later plugins of
// the chain add their own interfaces, so positions are not fixed.
func (r *PrevResult) Named(name string) int {
	for i := range r.Interfaces {
		if r.Interfaces[i].Name == name {
			return i
		}
	}
	return -1
}

// AddressesOf returns the addresses of interface i.
func (r *PrevResult) AddressesOf(i int) []netip.Addr {
	var out []netip.Addr
	for _, ip := range r.IPs {
		if ip.Interface == nil || *ip.Interface != i {
			continue
		}
		if p, err := netip.ParsePrefix(ip.Address); err == nil {
			out = append(out, p.Addr())
		}
	}
	return out
}
