package sim

import (
	"maps"
	"net/netip"
	"slices"

	"cnictl/daemon/ipam"
	"cnictl/daemon/resync"
)

// kernel is a node's network: links and, for each pod address, a route and rules.
type kernel struct {
	w       *World
	plugged map[ipam.ENIID]bool      // links of ENIs
	tables  map[netip.Addr]int       // route tables of ENIs by primary address
	links   map[string]*sandbox      // links of pods by name
	routes  map[netip.Addr]*podRoute // by pod address
}

type podRoute struct {
	link   string // "" if there are only rules
	toRule bool
	table  int // 254 if no rule selects another table
}

func newKernel(w *World) kernel {
	return kernel{
		w: w, plugged: map[ipam.ENIID]bool{}, tables: map[netip.Addr]int{},
		links: map[string]*sandbox{}, routes: map[netip.Addr]*podRoute{},
	}
}

func (k *kernel) plug(x *eni)   { k.plugged[x.ID] = true }
func (k *kernel) unplug(x *eni) { delete(k.plugged, x.ID) }

// addLink creates a pod's link. It replaces a link of the same name, along with its route.
func (k *kernel) addLink(name string, s *sandbox) {
	k.removeLink(name, nil)
	k.links[name] = s
}

// removeLink removes a link and the route over it, if the link still belongs to the sandbox
// or s is nil.
func (k *kernel) removeLink(name string, s *sandbox) {
	have, there := k.links[name]
	if !there || (s != nil && have != s) {
		return
	}
	delete(k.links, name)
	for addr, r := range k.routes {
		if r.link != name {
			continue
		}
		if r.link = ""; !r.toRule {
			delete(k.routes, addr)
		}
	}
}

// connect adds a pod's route and rules, the plugin's last step.
func (k *kernel) connect(name string, addr netip.Addr, table int) {
	k.routes[addr] = &podRoute{link: name, toRule: true, table: table}
}

// disconnect removes an address's route and rules.
func (k *kernel) disconnect(addr netip.Addr) { delete(k.routes, addr) }

// podRoutes lists routes and rules, ordered by address.
func (k *kernel) podRoutes() []resync.PodRoute {
	out := make([]resync.PodRoute, 0, len(k.routes))
	for _, a := range k.addresses() {
		r := k.routes[a]
		out = append(out, resync.PodRoute{Address: a, HostLink: r.link, ToRule: r.toRule, Table: r.table})
	}
	return out
}

// hostLinks returns the indexes of the host's links by name.
func (k *kernel) hostLinks() map[string]int {
	out := map[string]int{"lo": 1, "eth0": 2}
	for name := range k.links {
		out[name] = len(out) + 1
	}
	return out
}

// addresses returns those with a route or rules.
func (k *kernel) addresses() []netip.Addr {
	return slices.SortedFunc(maps.Keys(k.routes), netip.Addr.Compare)
}
