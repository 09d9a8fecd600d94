package vpc

import (
	"net/netip"
	"strconv"

	"cnictl/daemon/api/netnames"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// podResult is the result of an ADD. Fields of the entries of "interfaces" carry what DEL
// needs, across upgrades and downgrades: the mac of a container entry is the route table,
// the mac of the dummy the VLAN id (0: no branch ENI), the sandbox of the dummy the device
// number of the first interface (empty with a branch ENI).
type podResult struct {
	nics    []nic
	netns   string
	gateway netip.Addr // of the branch ENI's subnet; zero if none
	dummy   netconf.ResultInterface
}

// nic is one interface of a pod.
type nic struct {
	hostLink string
	podLink  string
	address  netip.Addr
	table    int
}

// newPodResult is the result of a plan whose pod is set up in netns.
func newPodResult(p *plan, netns string) *podResult {
	r := &podResult{nics: p.nics, netns: netns, dummy: netconf.ResultInterface{Name: netnames.DummyPrefix + p.hash, MAC: "0", Sandbox: strconv.Itoa(p.device)}}
	if p.branch != nil {
		r.gateway = p.branch.Gateway
		r.dummy.MAC, r.dummy.Sandbox = strconv.Itoa(p.branch.VLAN), ""
	}
	return r
}

// JSON renders the result in a version of the specification.
func (r *podResult) JSON(version string) []byte {
	out := netconf.Result{
		Interfaces: make([]netconf.ResultInterface, 0, 2*len(r.nics)+1),
		IPs:        make([]netconf.ResultIP, 0, len(r.nics)),
	}
	for i := range r.nics {
		n := &r.nics[i]
		out.Interfaces = append(out.Interfaces,
			netconf.ResultInterface{Name: n.hostLink},
			netconf.ResultInterface{Name: n.podLink, MAC: strconv.Itoa(n.table), Sandbox: r.netns})
		ip := netconf.ResultIP{Version: "4", Interface: new(int), Address: netip.PrefixFrom(n.address, n.address.BitLen()), Gateway: r.gateway}
		*ip.Interface = 2*i + 1
		oldest := &out.IP4 // which holds one address of each family
		if n.address.Is6() {
			ip.Version, oldest = "6", &out.IP6
		}
		if *oldest == nil {
			*oldest = &netconf.ResultOldIP{IP: ip.Address, Gateway: ip.Gateway}
		}
		out.IPs = append(out.IPs, ip)
	}
	out.Interfaces = append(out.Interfaces, r.dummy)
	return skel.PrintResult(&out, version)
}
