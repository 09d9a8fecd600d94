package egress

import (
	"errors"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/hostnet/egress"
	"cnictl/plugin/skel"
)

// del is the DEL command. Only the leases determine what to release: not the namespace,
// which may be gone, nor whether egress is still on.
func (c *command) del() *skel.Error {
	leases, err := c.leases(c.own)
	if err != nil {
		return c.leasesUnreadable(err)
	}
	if len(leases) == 0 {
		return c.delUnleased()
	}
	c.logRequest()
	return c.release(leases)
}

func (c *command) leasesUnreadable(err error) *skel.Error {
	return &skel.Error{Code: skel.CodeIO, Msg: textIPAM + err.Error(), Cause: cause.PodNetworkTeardown}
}

// delUnleased looks for a chain left by a DEL of upstream, which releases the lease first.
// With egress off that costs nothing.
func (c *command) delUnleased() *skel.Error {
	if !c.conf.On() {
		return nil
	}
	nodeIP, failure := c.nodeIP()
	if failure != nil {
		return nil // no ADD can have got far
	}
	c.logRequest()
	err := c.removeChain(nodeIP.Is6(), "")
	if errors.Is(err, errNoIPTables) {
		return nil // nor without iptables
	}
	return teardownFailed(err)
}

func teardownFailed(err error) *skel.Error {
	if err == nil {
		return nil
	}
	return internal(cause.PodNetworkTeardown, "failed to remove egress rules: "+err.Error())
}

// release removes what belongs to the leases, and then the leases. Deleting a pod must
// work even if iptables was removed from the node. The kernel still has the chain then,
// but no pod has the address: without iptables no ADD assigns it. Once iptables is back,
// the chain does the same as the next pod's own, and a repeated DEL or a GC removes it.
func (c *command) release(leases []lease) *skel.Error {
	for _, l := range leases {
		quick := ""
		if snat, failure := c.likelySNAT(l); failure == nil {
			quick = snat.Delete()
		}
		err := c.removeChain(l.address.Is6(), quick)
		if errors.Is(err, errNoIPTables) {
			c.log.Warn("The chain of " + l.address.String() + " stays: " + err.Error())
			err = nil
		}
		if err := errors.Join(err, dropHostRoute(l.address)); err != nil {
			return teardownFailed(err)
		}
	}
	if err := c.run("DEL"); err != nil {
		return ipamError(err)
	}
	return nil
}

// likelySNAT is what an ADD with this lease added. Only the rules that jump to the chain
// are deleted by their text, so the node's address does not matter.
func (c *command) likelySNAT(l lease) (egress.SNAT, error) {
	return egress.Wanted(c.conf.Name, c.ContainerID, l.address, l.address, egress.RandomNone)
}

func (c *command) removeChain(v6 bool, quick string) error {
	n, err := c.openNAT(v6)
	if err != nil {
		return err
	}
	return n.remove(egress.Chain(v6, c.conf.Name, c.ContainerID), quick)
}
