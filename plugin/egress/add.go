package egress

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/hostnet/egress"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// add is the ADD command.
func (c *command) add() *skel.Error {
	if !c.conf.On() {
		return c.passOn()
	}
	prev, failure := c.prevResult()
	if failure != nil {
		return failure
	}
	mtu, failure := c.mtu()
	if failure != nil {
		return failure
	}
	c.logRequest()
	if failure := c.OwnNetns(); failure != nil {
		return failure
	}
	nodeIP, failure := c.nodeIP()
	if failure != nil {
		return failure
	}
	n, err := c.openNAT(nodeIP.Is6())
	if err != nil {
		return internal(cause.PodNetworkSetup, err.Error())
	}
	l, err := openLink(c.Netns, nodeIP.Is6())
	if err != nil {
		return c.netnsFailed(err)
	}
	defer l.close()
	s := setup{command: c, nat: n, link: l}
	s.random = egress.ParseRandom(c.conf.RandomizeSNAT, true) // -w of iptables-restore came with 1.6.2, as did this
	failure = s.do(mtu)
	if failure == nil {
		failure = c.print(withInterfaces(prev, l.pair, c.Netns))
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

// print prints a result in the configuration's version.
func (c *command) print(r *types100.Result) *skel.Error {
	inVersion, err := r.GetAsVersion(c.Version)
	if err != nil {
		return internal(cause.InvalidRequest, err.Error())
	}
	text, err := json.MarshalIndent(inVersion, "", "    ")
	if err != nil {
		return internal(cause.InvalidRequest, err.Error())
	}
	return c.write(text)
}

func (c *command) write(result []byte) *skel.Error {
	if _, err := c.p.Stdout.Write(result); err != nil {
		return &skel.Error{Code: skel.CodeIO, Msg: "write result: " + err.Error(), Cause: cause.Internal}
	}
	return nil
}

// passOn is an ADD with egress off: it passes the previous result on. It avoids
// encoding/json, whose first use costs a tenth of such a run.
func (c *command) passOn() *skel.Error {
	if failure := c.chained(); failure != nil {
		return failure
	}
	prev, err := netconf.ParseResult(c.conf.RawPrevResult, c.Version)
	if err != nil {
		return internal(cause.InvalidRequest, textPrevResult+err.Error())
	}
	if _, failure := c.mtu(); failure != nil {
		return failure
	}
	return c.write(skel.PrintResult(prev, c.Version))
}

func (c *command) mtu() (int, *skel.Error) {
	mtu, err := c.conf.LinkMTU()
	if err != nil {
		return 0, &skel.Error{Code: skel.CodeInternal, Msg: textParse + err.Error(), Cause: cause.InvalidConfig, Details: skel.SettingDetails(err)}
	}
	return mtu, nil
}

// chained returns an error if no plugin ran before this one.
func (c *command) chained() *skel.Error {
	if len(c.conf.RawPrevResult) == 0 || string(c.conf.RawPrevResult) == "null" {
		return internal(cause.InvalidRequest, textChained)
	}
	return nil
}

// prevResult returns the result of the preceding plugins.
func (c *command) prevResult() (*types100.Result, *skel.Error) {
	if failure := c.chained(); failure != nil {
		return nil, failure
	}
	prev, err := readResult(c.conf.RawPrevResult, c.Version)
	if err != nil {
		return nil, internal(cause.InvalidRequest, err.Error())
	}
	return prev, nil
}

// readResult parses a previous result as the library does, except that it refuses nulls
// that would crash the library later.
func readResult(raw []byte, confVersion string) (*types100.Result, error) {
	if _, err := netconf.ParseResult(raw, confVersion); err != nil {
		return nil, errors.New(textPrevResult + err.Error())
	}
	conf := types.PluginConf{CNIVersion: confVersion}
	if err := json.Unmarshal(raw, &conf.RawPrevResult); err != nil {
		return nil, errors.New(textPrevResult + err.Error())
	}
	if err := version.ParsePrevResult(&conf); err != nil {
		return nil, err
	}
	return types100.NewResultFromResult(conf.PrevResult)
}

// withInterfaces returns the result with the pair appended to its interfaces.
func withInterfaces(r *types100.Result, pair egress.Pair, netns string) *types100.Result {
	out := *r
	out.Interfaces = append(slices.Clone(r.Interfaces),
		&types100.Interface{Name: pair.Host.Name, Mac: pair.Host.MAC.String()},
		&types100.Interface{Name: pair.Pod.Name, Mac: pair.Pod.MAC.String(), Sandbox: netns})
	return &out
}

// setup is an ADD in progress, with what has to be undone if it fails.
type setup struct {
	*command
	nat    *nat
	link   *link
	random egress.Random

	leased bool // or may be
	lease  egress.Lease
	snat   egress.SNAT // zero until the chain is being added
}

// do sets up lease, link and egress. host-local and iptables run while the kernel sets up
// the links.
func (s *setup) do(mtu int) *skel.Error {
	wait, err := s.startLease()
	if err != nil {
		return ipamError(err)
	}
	s.leased = true
	pairErr := s.link.createPair(mtu)
	result, err := wait()
	if err != nil {
		return ipamError(err)
	}
	lease, failure := leaseOf(result)
	if failure != nil {
		return failure
	}
	s.lease = lease
	if pairErr != nil {
		return internal(cause.PodNetworkSetup, textVethPair+pairErr.Error())
	}
	pod, err := egress.NewPod(s.link.pair, lease, s.IfName)
	if err != nil {
		return internal(cause.PodNetworkSetup, err.Error())
	}
	nodeIP, failure := s.nodeIP()
	if failure != nil {
		return failure
	}
	snat, err := egress.Wanted(s.conf.Name, s.ContainerID, lease.Address.Addr(), nodeIP, s.random)
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

// undo reverts what was set up, the lease last. Its own failures are logged: the lease
// then stays, and the runtime's DEL tries again.
func (s *setup) undo() {
	var errs [2]error
	if s.snat.Chain != "" {
		errs[0] = s.nat.remove(s.snat.Chain, s.snat.Delete())
	}
	errs[1] = s.link.undo()
	for _, err := range errs {
		if err != nil {
			s.log.Warn("Could not undo the egress setup of a failed ADD: " + err.Error())
		}
	}
	if !s.leased || errs[0] != nil {
		return
	}
	if err := s.run("DEL"); err != nil {
		s.log.Warn("Lease of a failed ADD is not released: " + err.Error())
	}
}
