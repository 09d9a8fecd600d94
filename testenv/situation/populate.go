package situation

import (
	"encoding/binary"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"time"

	"cnictl/doctor/evidence"
)

// population is the world, completed with invented addresses, MACs and pods.
type population struct {
	*world
	at      time.Time // time of the reading
	primary map[string]netip.Addr
	ips     map[string][]netip.Addr
	cidrs   map[string][]netip.Prefix
	macs    map[string]string
	records []record           // of the datastore
	pods    []evidence.KubePod // on the node and elsewhere, including those in the host network
}

// record is an address that is or was assigned to a pod.
type record struct {
	eni        *worldENI
	address    netip.Addr
	pod        evidence.Pod // empty if cooling
	gone       bool         // the pod is gone, but its address is still assigned
	assignedAt time.Time
	released   time.Time
}

// populate invents what the world does not specify. Nothing depends on the chosen addresses and
// names, so they are always the same.
func (w *world) populate(at time.Time) (*population, error) {
	p := &population{world: w, at: at, primary: map[string]netip.Addr{}, ips: map[string][]netip.Addr{}, cidrs: map[string][]netip.Prefix{}, macs: map[string]string{}}
	if err := p.inventAddresses(); err != nil {
		return nil, err
	}
	return p, p.assign()
}

// inventAddresses sets the MAC, the primary address, the secondary IPs and the prefixes of each
// interface. Those specified in the file come first.
func (p *population) inventAddresses() error {
	taken := map[netip.Addr]bool{}
	for i := range p.ENIs {
		for _, a := range p.ENIs[i].Addresses {
			taken[a] = true
		}
	}
	for i := range p.Pods {
		for _, a := range p.Pods[i].IPs {
			taken[a] = true
		}
	}
	next := map[string]netip.Addr{}
	pick := func(subnet *worldSubnet) (netip.Addr, error) {
		a, ok := next[subnet.ID]
		if !ok {
			a = skip(subnet.CIDR.Masked().Addr(), 4) // EC2 reserves the first four
		}
		for ; taken[a] || p.inPrefix(a); a = a.Next() {
		}
		next[subnet.ID] = a.Next()
		if !subnet.CIDR.Contains(a.Next()) { // and the last
			return a, fmt.Errorf("the interfaces in subnet %s have more addresses than %s", subnet.ID, subnet.CIDR)
		}
		return a, nil
	}
	if err := p.inventPrefixes(taken); err != nil {
		return err
	}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		subnet := p.subnet(e.Subnet)
		p.macs[e.ID] = or(e.MAC, fmt.Sprintf("02:00:0a:%02x:%02x:%02x", e.Card, e.device()&0xff, i))
		var err error
		if p.primary[e.ID], err = pick(subnet); err != nil {
			return err
		}
		ips := slices.Clone(e.Addresses)
		for j := range p.Pods { // a pod address from the file belongs to the pod's interface
			if pod := &p.Pods[j]; pod.ENI == e.ID {
				for _, a := range pod.IPs {
					if !slices.Contains(ips, a) && !p.inPrefix(a) {
						ips = append(ips, a)
					}
				}
			}
		}
		for len(ips) < e.IPs {
			a, err := pick(subnet)
			if err != nil {
				return err
			}
			ips = append(ips, a)
		}
		p.ips[e.ID] = ips
	}
	return nil
}

// inventPrefixes picks aligned blocks from the end of each subnet.
func (p *population) inventPrefixes(taken map[netip.Addr]bool) error {
	used := map[netip.Prefix]bool{}
	for i := range p.ENIs {
		for _, c := range p.ENIs[i].CIDRs {
			used[c] = true
		}
	}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		cidrs := slices.Clone(e.CIDRs)
		if len(cidrs) < e.Prefixes {
			subnet := p.subnet(e.Subnet)
			for block := range blocks(subnet, p.IPFamily == "ipv6") {
				if len(cidrs) == e.Prefixes {
					break
				}
				if used[block] || covers(block, taken) {
					continue
				}
				used[block] = true
				cidrs = append(cidrs, block)
			}
			if len(cidrs) < e.Prefixes {
				return fmt.Errorf("the interfaces in subnet %s have more prefixes than %s", subnet.ID, subnet.CIDR)
			}
		}
		p.cidrs[e.ID] = cidrs
	}
	return nil
}

func covers(block netip.Prefix, addresses map[netip.Addr]bool) bool {
	for a := range addresses {
		if block.Contains(a) {
			return true
		}
	}
	return false
}

func (p *population) inPrefix(a netip.Addr) bool {
	for _, cidrs := range p.cidrs {
		for _, c := range cidrs {
			if c.Contains(a) {
				return true
			}
		}
	}
	return false
}

// assign assigns addresses: to the pods in the file, then to invented and to gone pods. Then it
// records the cooling ones, which have no pod.
func (p *population) assign() error {
	free := map[string][]netip.Addr{}
	for i := range p.ENIs {
		e := &p.ENIs[i]
		free[e.ID] = p.pool(e, maxEntries)
	}
	take := func(e *worldENI, want []netip.Addr) netip.Addr {
		at := 0
		if len(free[e.ID]) == 0 {
			return netip.Addr{}
		}
		if len(want) > 0 {
			at = max(0, slices.Index(free[e.ID], want[0]))
		}
		a := free[e.ID][at]
		free[e.ID] = slices.Delete(free[e.ID], at, at+1)
		return a
	}
	named := map[string]int{}
	for i := range p.Pods {
		if err := p.named(&p.Pods[i], named, take); err != nil {
			return err
		}
	}
	invented := 0
	for i := range p.ENIs {
		e := &p.ENIs[i]
		at := p.at.Add(-*e.AssignedFor)
		for n := named[e.ID]; n < e.Assigned && len(free[e.ID]) > 0; n++ {
			r := record{eni: e, address: take(e, nil), assignedAt: at}
			if e.Assigned-n <= e.Gone {
				r.pod, r.gone = evidence.Pod(fmt.Sprintf("default/gone-%d-%d", i+1, e.Assigned-n)), true
			} else {
				invented++
				r.pod = evidence.Pod(fmt.Sprintf("default/pod-%d", invented))
				p.pods = append(p.pods, p.running(r.pod, r.address, at))
			}
			p.records = append(p.records, r)
		}
		for _, ago := range e.Cooling {
			if len(free[e.ID]) == 0 {
				return fmt.Errorf("interface %s has fewer addresses than pods hold and cool", e.ID)
			}
			released := p.at.Add(-ago)
			p.records = append(p.records, record{eni: e, address: take(e, nil), assignedAt: released.Add(-time.Hour), released: released})
		}
	}
	for n, name := range hostNames(p.HostPods) {
		pod := p.running(evidence.Pod("kube-system/"+name), p.primary[p.ENIs[0].ID], p.UpSince)
		pod.HostNetwork, pod.Owner = true, "DaemonSet"
		if n == 0 && p.Daemon == "none" {
			continue
		}
		p.pods = append(p.pods, pod)
	}
	return nil
}

// named adds a pod of the file, repeated by its count.
func (p *population) named(from *worldPod, taken map[string]int, take func(*worldENI, []netip.Addr) netip.Addr) error {
	for n := range max(1, from.Count) {
		pod := from.KubePod
		if from.Count > 0 {
			pod.Pod += evidence.Pod(fmt.Sprintf("-%d", n+1))
		}
		pod.Count = 0
		if e := p.eni(from.ENI); e != nil {
			r := record{eni: e, address: take(e, pod.IPs), pod: pod.Pod, assignedAt: p.at.Add(-*e.AssignedFor)}
			if !r.address.IsValid() {
				return fmt.Errorf("interface %s has fewer addresses than its pods hold", e.ID)
			}
			p.records = append(p.records, r)
			taken[e.ID]++
			if len(pod.IPs) == 0 && pod.Phase == "Running" {
				pod.IPs = []netip.Addr{r.address}
			}
		}
		p.pods = append(p.pods, pod)
	}
	return nil
}

// running returns an ordinary pod on the node.
func (p *population) running(name evidence.Pod, address netip.Addr, since time.Time) evidence.KubePod {
	pod := newPod(p.Node, p.at)
	pod.Pod, pod.CreatedAt, pod.StartedAt = name, since, since
	if address.IsValid() {
		pod.IPs = []netip.Addr{address}
	}
	return pod
}

// newPod returns a pod with the defaults of a list entry.
func newPod(node string, at time.Time) evidence.KubePod {
	since := at.Add(-time.Hour)
	return evidence.KubePod{
		Phase: "Running", Node: &node, ServiceAccount: "default", CreatedAt: since, StartedAt: since,
		Containers: []evidence.Container{{Name: "app"}},
	}
}

func hostNames(n int) []string {
	names := []string{"aws-node-1", "kube-proxy-1"}
	for i := 3; i <= n; i++ {
		names = append(names, fmt.Sprintf("host-%d", i))
	}
	return names[:n]
}

// pool returns the first addresses of an interface, in the order of assignment.
func (p *population) pool(e *worldENI, most int) []netip.Addr {
	out := slices.Clone(p.ips[e.ID])
	for _, c := range p.cidrs[e.ID] {
		for a := c.Masked().Addr(); c.Contains(a) && len(out) < most; a = a.Next() {
			out = append(out, a)
		}
	}
	return out
}

func skip(a netip.Addr, n int) netip.Addr {
	for range n {
		a = a.Next()
	}
	return a
}

// blocks yields the aligned /28s of a subnet from its end, or the /80s of its IPv6 range.
func blocks(s *worldSubnet, ipv6 bool) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		if ipv6 {
			cidr := netip.MustParsePrefix("2001:db8:0:a::/64")
			if s.IPv6CIDR != nil {
				cidr = *s.IPv6CIDR
			}
			base := cidr.Masked().Addr().As16()
			for n := uint16(1); n > 0; n++ {
				binary.BigEndian.PutUint16(base[8:], n)
				if !yield(netip.PrefixFrom(netip.AddrFrom16(base), 80)) {
					return
				}
			}
			return
		}
		first := s.CIDR.Masked().Addr().As4()
		start := binary.BigEndian.Uint32(first[:])
		end := uint64(start) + 1<<(32-s.CIDR.Bits())
		for at := end - 32; at > uint64(start); at -= 16 { // EC2 reserves the last address
			var a [4]byte
			binary.BigEndian.PutUint32(a[:], uint32(at))
			if !yield(netip.PrefixFrom(netip.AddrFrom4(a), 28)) {
				return
			}
		}
	}
}
