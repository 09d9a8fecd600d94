package vpc

import (
	"net/netip"
	"strconv"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/crashpoint"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/podnet/rules"
)

// podNames is what names and numbers an ADD settles on.
type podNames struct {
	hash     string
	hostLink string
	podLink  string
	address  netip.Addr
	table    int
}

// add is the ADD command. confErr is what was wrong with our own settings.
func (c *command) add(version string, confErr error) *cniError {
	c.log = newLog(&c.conf, c.Now, c.Stderr)
	defer c.log.flush()
	c.log.info(callerLog, "Constructed new logger instance")
	if confErr != nil {
		return c.fail(&cniError{code: codeInternal, msg: addPrefix + textBadConfig + confErr.Error(), cause: cause.InvalidConfig, details: settingDetails(confErr)})
	}
	if _, err := c.conf.PrevResult(); err != nil {
		return c.fail(internal(cause.InvalidRequest, addPrefix+textBadConfig+err.Error()))
	}
	c.logRequest(callerAdd, "add")
	c.logReplaced()
	c.log.debug(callerAdd, "Prev Result: <nil>\n")
	pod, err := parseArgs(c.args)
	if err != nil {
		return c.fail(&cniError{code: codeInternal, msg: addPrefix + textBadArgsAdd + err.Error(), cause: cause.InvalidRequest, details: argsDetails(c.args)})
	}
	c.pod = pod
	result, failure := c.connect()
	if failure != nil {
		return c.fail(failure)
	}
	crashpoint.Here(crashpoint.PluginBeforeResult)
	if _, err := c.Stdout.Write(result.JSON(version)); err != nil {
		return c.fail(&cniError{code: codeIO, msg: "write result: " + err.Error(), cause: cause.Internal})
	}
	crashpoint.Here(crashpoint.PluginAfterResult)
	return nil
}

// fail logs what the command fails with.
func (c *command) fail(err *cniError) *cniError { return c.failAt(callerAdd, err) }

func (c *command) failAt(caller string, err *cniError) *cniError {
	text := err.msg
	if err.details != "" {
		text += ": " + err.details
	}
	c.log.error(caller, err.cause, text)
	return err
}

// connect gets an address and puts the pod on the network. The namespace is looked
// at first, so that a sandbox that is gone takes no address.
func (c *command) connect() (*podResult, *cniError) {
	mtu, _ := c.conf.PodMTU()
	c.log.debug(callerAdd, "MTU value set is "+strconv.Itoa(mtu)+":")
	multi := c.wantsMultiNIC()

	hash := netnames.Hash(c.pod.podNamespace, c.pod.podName, 0)
	p := &podNames{hash: hash, hostLink: c.conf.VethPrefix + hash, podLink: c.ifName}
	ns, err := apply.OpenNetns(c.netns)
	if err != nil {
		return nil, &cniError{code: codeInternal, msg: setupText(err, p), cause: netnsCause(err), details: netnsDetails(err)}
	}
	defer ns.Close()
	s, err := apply.Begin(ns, apply.Options{Stay: true})
	if err != nil {
		return nil, internal(cause.PodNetworkSetup, setupText(err, p))
	}
	defer s.Close()
	if !c.overridden() && s.Own() {
		return nil, errOwnNetns()
	}
	call, failure := c.askDaemon(multi)
	if failure != nil {
		return nil, failure
	}
	defer call.close()
	// The veth pair is made while the daemon is at it: half of what the kernel has to
	// do, and it needs no address.
	pair := rules.NewPair(c.containerID, p.hostLink, p.podLink, mtu)
	early := s.TryPair(pair)
	reply, failure := c.hearDaemon(call)
	device := 0
	if failure == nil {
		if device, failure = c.usable(reply, p); failure == nil {
			failure = c.setup(s, p, pair, early)
		}
		if failure != nil {
			defer c.giveBack() // after the kernel state is gone
		}
	}
	if failure != nil {
		if err := s.Undo(); err != nil {
			c.log.error(callerDriver, cause.PodNetworkTeardown, err.Error())
		}
		return nil, failure
	}
	result := newPodResult(p, c.netns, device)
	c.log.debug(callerAdd, "Using dummy interface: {Name:"+result.dummy+" Mac:0 Mtu:0 Sandbox:"+strconv.Itoa(device)+" SocketPath: PciID:}")
	c.log.info(callerAdd, "NETWORK_POLICY_ENFORCING_MODE is not set")
	return result, nil
}

// logReplaced tells of settings that the original silently takes for others.
func (c *command) logReplaced() {
	for _, r := range c.conf.Replaced() {
		c.log.warn(callerAdd, "Key "+strconv.Quote(r.Key)+" of the network configuration has the unusable value "+quoted(r.Value)+
			"; accepted: "+r.Accepted+"; used: "+r.Used)
	}
}

func (c *command) wantsMultiNIC() bool {
	multi, value := c.conf.MultiNIC()
	if value != "" && !multi {
		c.log.debug(callerAdd, "annotation nicConfig has the unknown value "+strconv.Quote(value))
	}
	c.log.debug(callerAdd, "pod requires multi-nic attachment: "+strconv.FormatBool(multi))
	return multi
}

// askDaemon asks for an address.
func (c *command) askDaemon(multi bool) (*call, *cniError) {
	call, err := c.ask(cniwire.AppendAddRequest(make([]byte, 0, 512), &cniwire.AddRequest{
		PodName: c.pod.podName, PodNamespace: c.pod.podNamespace, PodUID: c.pod.podUID,
		ContainerID: c.containerID, IfName: c.ifName, NetworkName: c.conf.Name, Netns: c.netns,
		ClientVersion: c.Version, RequiresMultiNIC: multi,
	}), addDeadline, callerAdd)
	if err != nil {
		return nil, c.callFailed(err)
	}
	return call, nil
}

func (c *command) callFailed(err error) *cniError {
	return &cniError{code: codeInternal, msg: addPrefix + textCall + callText(err), cause: callCause(err), details: callDetails(c.Socket, err)}
}

// hearDaemon waits for the answer.
func (c *command) hearDaemon(call *call) (*cniwire.AddReply, *cniError) {
	answer, err := call.receive(c.log.flush)
	crashpoint.Here(crashpoint.PluginReplyRead)
	var reply *cniwire.AddReply
	if err == nil {
		reply, err = cniwire.DecodeAddReply(answer)
	}
	if err != nil {
		return nil, c.callFailed(err)
	}
	c.log.info(callerAdd, "Received add network response from ipamd for container "+c.containerID+" interface "+c.ifName+": "+addReplyText(reply))
	if reply.Success {
		return reply, nil
	}
	failure := &cniError{code: codeInternal, msg: addPrefix + textNoAddress, cause: cause.Code(reply.Cause), details: reply.Detail}
	if reply.Transient {
		failure.code = codeTryAgain
	}
	return nil, failure
}

// usable takes the one IPv4 address of an ordinary pod out of the reply.
func (c *command) usable(reply *cniwire.AddReply, p *podNames) (device int, _ *cniError) {
	unsupported := func(what string) *cniError {
		return internal(cause.NotSupported, textSetup+what+" not supported by this version of aws-cni")
	}
	switch {
	case reply.PodVLANID != 0:
		return 0, unsupported("branch ENIs are")
	case len(reply.Allocations) > 1:
		return 0, unsupported("pods with several interfaces are")
	case len(reply.Allocations) == 0:
		return 0, c.emptyReply("the daemon's reply has no address")
	case reply.NetworkPolicyMode != "":
		return 0, &cniError{code: codeInternal, msg: addPrefix + textNoPolicy, cause: cause.NotSupported,
			details: "NETWORK_POLICY_ENFORCING_MODE is " + strconv.Quote(reply.NetworkPolicyMode) +
				", and this version of aws-cni does not call the network policy agent; unset it"}
	}
	a := reply.Allocations[0]
	if a.IPv4 == "" && a.IPv6 != "" {
		return 0, unsupported("IPv6 pods are")
	}
	address, err := netip.ParseAddr(a.IPv4)
	if err != nil || !address.Is4() {
		return 0, c.emptyReply("the daemon's reply has the unusable address " + strconv.Quote(a.IPv4))
	}
	p.address, p.table = address, int(a.RouteTable)
	return int(a.Device), nil
}

func (c *command) emptyReply(why string) *cniError {
	return &cniError{code: codeInternal, msg: addPrefix + textNoAddress, cause: cause.DaemonMismatch, details: why}
}

// setup puts the pod's network into the kernel. early is what became of the veth pair.
func (c *command) setup(s *apply.Setup, p *podNames, pair rules.Pair, early error) *cniError {
	c.log.debug(callerAdd, "SetupPodNetwork: hostVethName="+p.hostLink+", contVethName="+p.podLink+", netnsPath="+c.netns+
		", ipAddr="+addressText(p.address)+", routeTableNumber="+strconv.Itoa(p.table)+", mtu="+strconv.Itoa(pair.MTU))
	wanted, err := rules.NewPod(pair, p.address, p.table)
	if err == nil {
		err = early
	}
	if err == nil {
		err = s.CreatePair(pair)
	}
	if err == nil {
		err = s.Network(wanted)
	}
	if s.Replaced {
		c.log.debug(callerDriver, "Successfully deleted old hostVeth "+p.hostLink)
	}
	if err != nil {
		return internal(cause.PodNetworkSetup, setupText(err, p))
	}
	c.logRules(p)
	return nil
}

func (c *command) logRules(p *podNames) {
	address := ", containerAddr=" + addressText(p.address)
	c.log.debug(callerDriver, "Successfully setup container route"+address+", hostVeth="+p.hostLink+", rtTable=main")
	c.log.debug(callerDriver, "Successfully setup toContainer rule"+address+", rtTable=main")
	if table := tableText(p.table); table != "main" {
		c.log.debug(callerDriver, "Successfully setup fromContainer rule"+address+", rtTable="+table)
	}
}

// giveBack returns the address of an ADD that failed. Its own failure is logged:
// the runtime's DEL tries again.
func (c *command) giveBack() {
	reply, err := c.delNetwork("SetupNSFailed", "")
	switch {
	case err != nil:
		c.log.error(callerAdd, callCause(err), "Failed to release the address of container "+c.containerID+": "+err.Error())
	case !reply.Success && !reply.Unknown:
		c.log.error(callerAdd, cause.Code(reply.Cause), "Failed to release the address of container "+c.containerID+": "+causeText(reply.Cause, reply.Detail))
	}
}

func (c *command) logRequest(caller, verb string) {
	var b strings.Builder
	for _, part := range []string{
		"Received CNI ", verb, " request: ContainerID(", c.containerID, ") Netns(", c.netns, ") IfName(", c.ifName,
		") Args(", c.args, ") Path(", c.path, " argsStdinData(", string(c.stdin), ")",
	} {
		b.WriteString(part)
	}
	c.log.info(caller, b.String())
}
