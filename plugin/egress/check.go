package egress

import (
	"errors"
	"net/netip"
	"strings"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/skel"
)

// check is the CHECK command. It compares with what ADD left and changes nothing. Without
// a previous result that names our links there is nothing to compare with.
func (c *command) check() *skel.Error {
	if !c.conf.On() {
		return nil
	}
	c.logRequest()
	prev, failure := c.prevResult()
	if failure != nil {
		return failure
	}
	nodeIP, failure := c.nodeIP()
	if failure != nil {
		return failure
	}
	host, pod := ourLinks(prev, nodeIP.Is6())
	if pod == "" {
		return nil
	}
	if err := c.run("CHECK"); err != nil {
		return ipamError(err)
	}
	leases, err := c.leases(c.own)
	if err != nil {
		return c.leasesUnreadable(err)
	}
	if len(leases) != 1 {
		return c.differs([]string{"no lease in " + c.leaseDir()})
	}
	missing, err := c.missing(leases[0].address, nodeIP, host, pod)
	switch {
	case errors.Is(err, unix.ENOENT):
		return internal(cause.NetnsGone, err.Error())
	case err != nil:
		return internal(cause.Internal, "read the pod's egress: "+err.Error())
	case len(missing) > 0:
		return c.differs(missing)
	}
	return nil
}

func (c *command) differs(missing []string) *skel.Error {
	return &skel.Error{Code: skel.CodeInternal, Msg: "the pod's egress is not as ADD left it: " + strings.Join(missing, "; "), Cause: cause.PodNetworkChanged,
		Details: "delete the pod to have its network recreated; if it happens again, look for what else changes links and rules on the node"}
}

// ourLinks returns our links' names in a result: the pod end, and the host end before it.
func ourLinks(r *types100.Result, v6 bool) (host, pod string) {
	name := egress.PodLink4
	if v6 {
		name = egress.PodLink6
	}
	for i, entry := range r.Interfaces {
		if entry.Name == name && i > 0 {
			return r.Interfaces[i-1].Name, name
		}
	}
	return "", ""
}

func (c *command) missing(podIP, nodeIP netip.Addr, hostLink, podLink string) (out []string, err error) {
	ns, err := openNetns(c.Netns)
	if err != nil {
		return nil, err
	}
	defer unix.Close(ns)
	n, err := c.openNAT(nodeIP.Is6())
	if err != nil {
		return nil, err
	}
	snat, err := egress.Wanted(c.conf.Name, c.ContainerID, podIP, nodeIP, egress.ParseRandom(c.conf.RandomizeSNAT, true))
	if err != nil {
		return nil, err
	}
	nat, err := n.table()
	if err != nil {
		return nil, err
	}
	out = snat.Missing(nat)
	host, err := rtnl.Open()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	pod, err := rtnl.OpenIn(ns)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	links, err := missingLinks(host, pod, podIP, hostLink, podLink)
	return append(out, links...), err
}

func missingLinks(host, pod *rtnl.Conn, podIP netip.Addr, hostLink, podLink string) (out []string, _ error) {
	inHost, err := missingOn(host, hostLink, podIP, "host", netip.PrefixFrom(podIP, podIP.BitLen()), netip.Addr{})
	if err != nil {
		return nil, err
	}
	all := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	if podIP.Is6() {
		all = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	inPod, err := missingOn(pod, podLink, podIP, "pod", all, podIP)
	return append(inHost, inPod...), err
}

// missingOn compares one side: its link, its route and, in the pod, its address.
func missingOn(conn *rtnl.Conn, name string, podIP netip.Addr, side string, dst netip.Prefix, address netip.Addr) ([]string, error) {
	link, found, err := conn.LinkByName(name)
	if err != nil {
		return nil, err
	}
	if !found || link.Flags&unix.IFF_UP == 0 {
		return []string{side + " link " + name + " is missing or down"}, nil
	}
	var out []string
	fam := uint8(unix.AF_INET)
	if podIP.Is6() {
		fam = unix.AF_INET6
	}
	routes, err := conn.Routes(fam, netnames.MainTable)
	if err != nil {
		return nil, err
	}
	has := false
	for _, r := range routes {
		has = has || r.Dst == dst && r.Link == link.Index
	}
	if !has {
		out = append(out, side+" route "+dst.String()+" over "+name+" is missing")
	}
	if !address.IsValid() {
		return out, nil
	}
	list, err := conn.Addresses(fam)
	if err != nil {
		return nil, err
	}
	for _, a := range list {
		if a.Link == link.Index && a.Prefix.Addr() == address {
			return out, nil
		}
	}
	return append(out, "pod address "+address.String()+" on "+name+" is missing"), nil
}
