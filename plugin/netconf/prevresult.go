package netconf

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// PrevResult is what DEL needs of the result that ADD printed, whatever its version.
type PrevResult struct {
	Interfaces []Interface `json:"interfaces"`
	IPs        []IP        `json:"ips"`
}

// Interface of a result. In ours, mac and sandbox carry other things: see
// plugin/vpc.
type Interface struct {
	Name    string `json:"name"`
	MAC     string `json:"mac"`
	Sandbox string `json:"sandbox"`
}

// IP of a result.
type IP struct {
	Interface *int   `json:"interface"` // index into Interfaces
	Address   string `json:"address"`   // with its prefix length
}

// PrevResult reads the previous result; nil without one. Versions before 0.3.0 have
// no interfaces, so theirs reads as empty.
func (c *NetConf) PrevResult() (*PrevResult, error) {
	if len(c.RawPrevResult) == 0 || string(c.RawPrevResult) == "null" {
		return nil, nil
	}
	out, ok := prevResultUsual(c.RawPrevResult)
	if !ok {
		out = PrevResult{}
		if err := json.Unmarshal(c.RawPrevResult, &out); err != nil {
			return nil, fmt.Errorf("could not parse prevResult: %w", err)
		}
	}
	for _, ip := range out.IPs {
		if _, err := netip.ParsePrefix(ip.Address); err != nil {
			return nil, fmt.Errorf("could not parse prevResult: invalid CIDR address: %s", ip.Address)
		}
	}
	return &out, nil
}

func prevResultUsual(raw []byte) (out PrevResult, ok bool) {
	s := &scanner{in: raw}
	top := fields{known: []string{"interfaces", "ips"}}
	s.object(func(key string) {
		switch top.at(s, key) {
		case 0:
			s.array(func() { out.Interfaces = append(out.Interfaces, s.resultInterface()) })
		case 1:
			s.array(func() { out.IPs = append(out.IPs, s.resultIP()) })
		default:
			s.skip(0)
		}
	})
	s.end()
	return out, !s.stuck
}

func (s *scanner) resultInterface() (out Interface) {
	level := fields{known: []string{"name", "mac", "sandbox"}}
	texts := [...]*string{&out.Name, &out.MAC, &out.Sandbox}
	s.object(func(key string) {
		if i := level.at(s, key); i >= 0 {
			*texts[i] = s.text()
			return
		}
		s.skip(0)
	})
	return out
}

func (s *scanner) resultIP() (out IP) {
	level := fields{known: []string{"interface", "address"}}
	s.object(func(key string) {
		switch level.at(s, key) {
		case 0:
			n := s.number()
			out.Interface = &n
		case 1:
			out.Address = s.text()
		default:
			s.skip(0)
		}
	})
	return out
}

// Named finds an interface by name, −1 if there is none. Plugins further down the
// chain add interfaces of their own, so positions mean nothing.
func (r *PrevResult) Named(name string) int {
	for i := range r.Interfaces {
		if r.Interfaces[i].Name == name {
			return i
		}
	}
	return -1
}

// AddressesOf are the addresses of interface i.
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
