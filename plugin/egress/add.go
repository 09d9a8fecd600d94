package egress

import (
	"errors"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/egress/rules"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// add is the ADD command. Where egress is off it only hands the result on.
func (c *command) add() *skel.Error {
	prev, failure := c.prevResult()
	if failure != nil {
		return failure
	}
	mtu, err := c.conf.LinkMTU()
	if err != nil {
		return &skel.Error{Code: skel.CodeInternal, Msg: textParse + err.Error(), Cause: cause.InvalidConfig, Details: skel.SettingDetails(err)}
	}
	if !c.conf.On() {
		return c.print(skel.PrintResult(prev, c.Version))
	}
	c.logRequest()
	if failure := c.OwnNetns(); failure != nil {
		return failure
	}
	nodeIP, failure := c.nodeIP()
	if failure != nil {
		return failure
	}
	n, err := c.p.openNAT(nodeIP.Is6())
	if err != nil {
		return internal(cause.PodNetworkSetup, err.Error())
	}
	l, err := c.p.openLink(c.Netns, nodeIP.Is6())
	if err != nil {
		return c.netnsFailed(err)
	}
	defer l.close()
	s := setup{command: c, nat: n, link: l}
	s.random = rules.ParseRandom(c.conf.RandomizeSNAT, true) // a restore with -w knows it too, both being of 1.6.2
	failure = s.do(mtu)
	if failure == nil {
		host, pod := l.pair.Host, l.pair.Pod
		result, err := withInterfaces(prev, c.Version, netconf.ResultInterface{Name: host.Name, MAC: host.MAC.String()},
			netconf.ResultInterface{Name: pod.Name, MAC: pod.MAC.String(), Sandbox: c.Netns})
		if err != nil {
			failure = internal(cause.InvalidRequest, err.Error())
		} else {
			failure = c.print(result)
		}
	}
	if failure != nil {
		s.undo()
		return failure
	}
	c.log.Debug("Egress of " + s.lease.Address.String() + " over " + l.pair.Host.Name + " by chain " + s.snat.Chain)
	return nil
}

func (c *command) netnsFailed(err error) *skel.Error {
	why := cause.PodNetworkSetup
	if errors.Is(err, unix.ENOENT) {
		why = cause.NetnsGone
	}
	return internal(why, err.Error())
}

func (c *command) print(result []byte) *skel.Error {
	if _, err := c.p.Stdout.Write(result); err != nil {
		return &skel.Error{Code: skel.CodeIO, Msg: "write result: " + err.Error(), Cause: cause.Internal}
	}
	return nil
}

// prevResult is the result of the plugins before.
func (c *command) prevResult() (*netconf.Result, *skel.Error) {
	if len(c.conf.RawPrevResult) == 0 || string(c.conf.RawPrevResult) == "null" {
		return nil, internal(cause.InvalidRequest, textChained)
	}
	prev, err := netconf.ParseResult(c.conf.RawPrevResult, c.Version)
	if err != nil {
		return nil, internal(cause.InvalidRequest, textPrevResult+err.Error())
	}
	return prev, nil
}

// setup is an ADD under way: what of it there is to take back.
type setup struct {
	*command
	nat    *nat
	link   *link
	random rules.Random

	leased bool // perhaps
	lease  rules.Lease
	snat   rules.SNAT // zero: no chain was begun
}

// do makes lease, link and rules. The programs work while the kernel is at the links.
func (s *setup) do(mtu int) *skel.Error {
	d, err := s.delegate("ADD")
	if err != nil {
		return ipamError(err)
	}
	s.leased = true
	pairErr := s.link.createPair(mtu)
	out, err := d.wait()
	if err != nil {
		return ipamError(err)
	}
	lease, failure := s.readLease(out)
	if failure != nil {
		return failure
	}
	s.lease = lease
	if pairErr != nil {
		return internal(cause.PodNetworkSetup, textVethPair+pairErr.Error())
	}
	pod, err := rules.NewPod(s.link.pair, lease, s.IfName)
	if err != nil {
		return internal(cause.PodNetworkSetup, err.Error())
	}
	nodeIP, failure := s.nodeIP()
	if failure != nil {
		return failure
	}
	snat, err := rules.Wanted(s.conf.Name, s.ContainerID, lease.Address.Addr(), nodeIP, s.random)
	if err != nil {
		return internal(cause.InvalidConfig, err.Error())
	}
	s.snat = snat
	restore, err := s.nat.begin(snat.Add())
	if err != nil {
		return internal(cause.PodNetworkSetup, "failed to program iptables: "+err.Error())
	}
	linkErr := s.link.network(pod)
	if err := s.nat.finishAdd(restore, snat); err != nil {
		return &skel.Error{Code: skel.CodeInternal, Msg: "failed to program iptables: " + err.Error(), Cause: cause.PodNetworkSetup,
			Details: "chain " + snat.Chain + " of table nat; is the xtables lock held, or does another program replace the table?"}
	}
	if linkErr != nil {
		return internal(cause.PodNetworkSetup, linkErr.Error())
	}
	return nil
}

// undo takes back what was made, the lease last. Its own failures are logged: the
// lease stays then, and the runtime's DEL tries again.
func (s *setup) undo() {
	var errs [2]error
	if s.snat.Chain != "" {
		errs[0] = s.nat.remove(s.snat.Chain, s.snat.Delete())
	}
	errs[1] = s.link.undo()
	for _, err := range errs {
		if err != nil {
			s.log.Warn("Egress of a failed ADD is not taken back: " + err.Error())
		}
	}
	if !s.leased || errs[0] != nil {
		return
	}
	if _, err := s.run("DEL"); err != nil {
		s.log.Warn("Lease of a failed ADD is not released: " + err.Error())
	}
}
