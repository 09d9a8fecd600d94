package vpc

import (
	"strconv"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/crashpoint"
	"cnictl/plugin/podnet/apply"
)

// add is the ADD command. confErr is the error in our own settings.
func (c *command) add(version string, confErr error) *cniError {
	c.log = newLog(&c.conf, c.Now, c.Stderr)
	defer c.log.Flush()
	c.log.Info("Constructed new logger instance")
	if confErr != nil {
		return c.fail(&cniError{code: codeInternal, msg: addPrefix + textBadConfig + confErr.Error(), cause: cause.InvalidConfig, details: settingDetails(confErr)})
	}
	if _, err := c.conf.PrevResult(); err != nil {
		return c.fail(internal(cause.InvalidRequest, addPrefix+textBadConfig+err.Error()))
	}
	c.logRequest("add")
	c.logReplaced()
	c.log.Debug("Prev Result: <nil>\n")
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

// fail logs the command's error and returns it.
func (c *command) fail(err *cniError) *cniError {
	text := err.msg
	if err.details != "" {
		text += ": " + err.details
	}
	c.log.Error(err.cause, text)
	return err
}

// connect gets addresses and puts the pod on the network. It opens the namespace first, so
// that a sandbox that is already gone takes no address.
func (c *command) connect() (*podResult, *cniError) {
	p := c.newPlan()
	multi := c.wantsMultiNIC()
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
	call, reply, failure := c.askDaemon(multi)
	if failure != nil {
		return nil, failure
	}
	// Create the veth pair while the daemon is working: it is half of the kernel's work
	// and needs no address.
	s.TryPair(p.firstPair(c.containerID))
	if call != nil {
		defer call.close()
		reply, failure = c.awaitReply(call)
	}
	if failure == nil {
		failure = c.granted(reply)
	}
	if failure == nil {
		if failure = p.fill(c, reply); failure == nil {
			failure = c.setup(s, p)
		}
		if failure != nil {
			defer c.giveBack() // after the kernel state is gone
		}
	}
	if failure != nil {
		if err := c.undo(s, p); err != nil {
			c.log.Error(cause.PodNetworkTeardown, err.Error())
		}
		return nil, failure
	}
	result := newPodResult(p, c.netns)
	c.log.Debug("Using dummy interface: {Name:" + result.dummy.Name + " Mac:" + result.dummy.MAC + " Mtu:0 Sandbox:" + result.dummy.Sandbox + " SocketPath: PciID:}")
	return result, c.enforcePolicy(p)
}

// logReplaced logs settings that upstream silently replaces.
func (c *command) logReplaced() {
	for _, r := range c.conf.Replaced() {
		c.log.Warn("Key " + strconv.Quote(r.Key) + " of the network configuration has the unusable value " + quoted(r.Value) +
			"; accepted: " + r.Accepted + "; used: " + r.Used)
	}
}

func (c *command) wantsMultiNIC() bool {
	multi, value := c.conf.MultiNIC()
	if value != "" && !multi {
		c.log.Debug("annotation nicConfig has the unknown value " + strconv.Quote(value))
	}
	c.log.Debug("pod requires multi-nic attachment: " + strconv.FormatBool(multi))
	return multi
}

// askDaemon requests addresses. The call is nil when upstream's daemon has already
// answered.
func (c *command) askDaemon(multi bool) (*call, *cniwire.AddReply, *cniError) {
	r := cniwire.AddRequest{
		PodName: c.pod.podName, PodNamespace: c.pod.podNamespace, PodUID: c.pod.podUID,
		ContainerID: c.containerID, IfName: c.ifName, NetworkName: c.conf.Name, Netns: c.netns,
		ClientVersion: c.Version, RequiresMultiNIC: multi,
	}
	call, err := c.ask(cniwire.AppendAddRequest(make([]byte, 0, 512), &r), addDeadline)
	var reply *cniwire.AddReply
	if err != nil && c.legacyInstead(err) {
		c.log.Flush() // the call may block
		reply, err = c.legacyAdd(&r)
	}
	if err != nil {
		return nil, nil, c.callFailed(err)
	}
	return call, reply, nil
}

func (c *command) callFailed(err error) *cniError {
	return &cniError{code: codeInternal, msg: addPrefix + textCall + callText(err), cause: callCause(err), details: callDetails(c.Socket, err)}
}

// awaitReply waits for the daemon's answer.
func (c *command) awaitReply(call *call) (*cniwire.AddReply, *cniError) {
	answer, err := call.receive(c.log.Flush)
	crashpoint.Here(crashpoint.PluginReplyRead)
	var reply *cniwire.AddReply
	if err == nil {
		reply, err = cniwire.DecodeAddReply(answer)
	}
	if err != nil {
		return nil, c.callFailed(err)
	}
	return reply, nil
}

// granted returns the error if the reply is a refusal.
func (c *command) granted(reply *cniwire.AddReply) *cniError {
	c.log.Info("Received add network response from ipamd for container " + c.containerID + " interface " + c.ifName + ": " + addReplyText(reply))
	if reply.Success {
		return nil
	}
	failure := &cniError{code: codeInternal, msg: addPrefix + textNoAddress, cause: cause.Code(reply.Cause), details: reply.Detail}
	if reply.Transient {
		failure.code = codeTryAgain
	}
	return failure
}

// setup puts the pod's network into the kernel.
func (c *command) setup(s *apply.Setup, p *plan) *cniError {
	if err := p.layOut(c.containerID); err != nil {
		return badReply(err.Error())
	}
	var err error
	if p.branch == nil {
		for i := range p.nics {
			n := &p.nics[i]
			c.log.Debug("SetupPodNetwork: hostVethName=" + n.hostLink + ", contVethName=" + n.podLink + ", netnsPath=" + c.netns +
				", ipAddr=" + addressText(n.address) + ", routeTableNumber=" + strconv.Itoa(n.table) + ", mtu=" + strconv.Itoa(p.mtu))
		}
		err = s.Network(p.wanted)
	} else {
		err = c.setupBranch(s, p)
	}
	if s.Replaced {
		c.log.Debug("Successfully deleted old hostVeth " + p.nics[0].hostLink)
	}
	if err != nil {
		return internal(cause.PodNetworkSetup, setupText(err, p))
	}
	c.logMade(p)
	return nil
}

// logMade logs the routes and rules with upstream's texts.
func (c *command) logMade(p *plan) {
	for i := range p.wanted.Interfaces {
		f := &p.wanted.Interfaces[i]
		address := ", containerAddr=" + f.Address.String()
		c.log.Debug("Successfully setup container route" + address + ", hostVeth=" + f.Pair.Host.Name + ", rtTable=" + tableText(f.ToPod.Table))
		for _, r := range f.Rules {
			switch {
			case r.InLink == f.Pair.Host.Name:
				c.log.Debug("Successfully setup fromHostVeth rule, hostVeth=" + r.InLink + ", rtTable=" + tableText(r.Table))
			case r.InLink != "":
				c.log.Debug("Successfully setup fromHostVlan rule, hostVlan=" + r.InLink + ", rtTable=" + tableText(r.Table))
			case r.To.IsValid():
				c.log.Debug("Successfully setup toContainer rule" + address + ", rtTable=main")
			default:
				c.log.Debug("Successfully setup fromContainer rule" + address + ", rtTable=" + tableText(r.Table))
			}
		}
	}
}

// giveBack releases the address of a failed ADD. A failure to do so is only logged: the
// runtime's DEL tries again.
func (c *command) giveBack() {
	reply, err := c.delNetwork("SetupNSFailed", "", delDeadline)
	switch {
	case err != nil:
		c.log.Error(callCause(err), "Failed to release the address of container "+c.containerID+": "+err.Error())
	case !reply.Success && !reply.Unknown:
		c.log.Error(cause.Code(reply.Cause), "Failed to release the address of container "+c.containerID+": "+causeText(reply.Cause, reply.Detail))
	}
}

func (c *command) logRequest(verb string) {
	var b strings.Builder
	for _, part := range []string{
		"Received CNI ", verb, " request: ContainerID(", c.containerID, ") Netns(", c.netns, ") IfName(", c.ifName,
		") Args(", c.args, ") Path(", c.path, " argsStdinData(", string(c.stdin), ")",
	} {
		b.WriteString(part)
	}
	c.log.Info(b.String())
}
