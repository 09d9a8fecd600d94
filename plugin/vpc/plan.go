package vpc

import (
	"net/netip"
	"strconv"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/plugin/podnet/rules"
)

// plan is what an ADD is going to set up.
type plan struct {
	hash   string // of the pod's namespace and name
	mtu    int
	device int // of the first address's ENI
	nics   []nic
	branch *rules.BranchENI // nil if none
	policy string           // mode of network policy; empty if off
	wanted rules.Pod
}

const enforcingStandard = "standard"

// newPlan is the plan before the daemon has answered: the first interface of an ordinary
// pod.
func (c *command) newPlan() *plan {
	mtu, _ := c.conf.PodMTU()
	c.log.Debug("MTU value set is " + strconv.Itoa(mtu) + ":")
	hash := netnames.Hash(c.pod.podNamespace, c.pod.podName, 0)
	return &plan{hash: hash, mtu: mtu, nics: []nic{{hostLink: c.conf.VethPrefix + hash, podLink: c.ifName}}}
}

// fill takes the pod's addresses from the daemon's reply. An invalid reply is handled like
// one without an address, on which upstream panics.
func (p *plan) fill(c *command, reply *cniwire.AddReply) *cniError {
	if len(reply.Allocations) == 0 {
		return badReply("the daemon's reply has no address")
	}
	p.device, p.policy = int(reply.Allocations[0].Device), reply.NetworkPolicyMode
	list := reply.Allocations
	if reply.PodVLANID != 0 {
		list = list[:1]
		if failure := p.fillBranch(c, reply); failure != nil {
			return failure
		}
	}
	for i := range list {
		address, ok := addressOf(&list[i])
		if !ok {
			return badReply("the daemon's reply has the unusable address " + strconv.Quote(list[i].IPv4+list[i].IPv6))
		}
		if i > 0 {
			p.nics = append(p.nics, nic{
				hostLink: netnames.HostVeth(c.conf.VethPrefix, c.pod.podNamespace, c.pod.podName, i),
				podLink:  netnames.PodInterface(c.ifName, i),
			})
		}
		p.nics[i].address, p.nics[i].table = address, int(list[i].RouteTable)
	}
	return nil
}

// fillBranch takes from the reply what only pods with branch ENIs have.
func (p *plan) fillBranch(c *command, reply *cniwire.AddReply) *cniError {
	mac, ok := netstate.ParseMAC(reply.PodENIMAC)
	if !ok {
		return badReply("the daemon's reply has the unusable MAC " + strconv.Quote(reply.PodENIMAC) + " of a branch ENI")
	}
	gateway, err := netip.ParseAddr(reply.PodENISubnetGW)
	if err != nil {
		return badReply("the daemon's reply has the unusable gateway " + strconv.Quote(reply.PodENISubnetGW) + " of a branch ENI's subnet")
	}
	if reply.ParentIfIndex <= 0 {
		return badReply("the daemon's reply has the unusable index " + strconv.Itoa(int(reply.ParentIfIndex)) + " of the trunk ENI's link")
	}
	p.branch = &rules.BranchENI{
		VLAN: int(reply.PodVLANID), MAC: mac, Gateway: gateway, Trunk: reply.ParentIfIndex,
		Strict: c.conf.PodSGEnforcingMode != enforcingStandard,
	}
	if p.branch.Strict {
		p.nics[0].hostLink = netnames.BranchVethPrefix + p.hash
	}
	return nil
}

func addressOf(a *cniwire.Allocation) (netip.Addr, bool) {
	text, is4 := a.IPv4, true
	if text == "" {
		text, is4 = a.IPv6, false
	}
	address, err := netip.ParseAddr(text)
	return address, err == nil && address.Is4() == is4 && address.Zone() == ""
}

func badReply(why string) *cniError {
	return &cniError{code: codeInternal, msg: addPrefix + textNoAddress, cause: cause.DaemonMismatch, details: why}
}

// firstPair is the veth pair of the first interface, which needs no address.
func (p *plan) firstPair(containerID string) rules.Pair {
	return rules.NewPair(containerID, p.nics[0].hostLink, p.nics[0].podLink, p.mtu)
}

// layOut computes the wanted state of the plan, with the veth pairs of the sandbox.
func (p *plan) layOut(containerID string) (err error) {
	if p.branch != nil {
		p.wanted, err = rules.NewBranchPod(p.firstPair(containerID), p.nics[0].address, *p.branch)
		return err
	}
	list := make([]rules.Attachment, len(p.nics))
	for i := range p.nics {
		n := &p.nics[i]
		list[i] = rules.Attachment{Pair: rules.NewPair(containerID, n.hostLink, n.podLink, p.mtu).Further(i), Address: n.address, Table: n.table}
	}
	p.wanted, err = rules.NewPod(list...)
	return err
}
