package vpc

import (
	"errors"
	"net/netip"
	"strconv"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/podnet/rules"
)

// del is the DEL command.
func (c *command) del(confErr error) *cniError {
	c.log = newLog(&c.conf, c.Now, c.Stderr)
	defer c.log.Flush()
	c.log.Info("Constructed new logger instance")
	if confErr != nil {
		return c.fail(&cniError{code: codeInternal, msg: delPrefix + textBadConfig + confErr.Error(), cause: cause.InvalidConfig, details: settingDetails(confErr)})
	}
	prev := c.prevResult()
	c.logRequest("del")
	pod, err := parseArgs(c.args)
	if err != nil {
		return c.fail(&cniError{code: codeInternal, msg: delPrefix + textBadArgsDel + err.Error(), cause: cause.InvalidRequest, details: argsDetails(c.args)})
	}
	c.pod = pod
	if err := c.disconnect(newAttachment(c, prev)); err != nil {
		return c.fail(err)
	}
	if c.frame.OwnNetns() != nil {
		return c.fail(errOwnNetns())
	}
	return nil
}

// prevResult returns the previous result, nil if there is none or it cannot be read: a pod
// with a damaged result must still be deletable.
func (c *command) prevResult() *netconf.PrevResult {
	prev, err := c.conf.PrevResult()
	if err != nil {
		c.log.Warn("Ignoring previous result: " + err.Error())
		return nil
	}
	if prev == nil {
		c.log.Debug("Prev Result: <nil>\n")
	} else {
		c.log.Debug("Prev Result: " + string(c.conf.RawPrevResult) + "\n")
	}
	return prev
}

// disconnect removes the pod's network: by our own record or the previous result for a
// branch-ENI pod, else by the daemon's answer, else by the previous result.
func (c *command) disconnect(prev *attachment) *cniError {
	handled, err := c.disconnectBranch(prev)
	if handled || err != nil {
		return err
	}
	asked := c.Now()
	reply, callErr := c.delNetwork("PodDeleted", c.pod.podUID, delDeadline)
	if callErr != nil {
		c.log.Error(callCause(callErr), "Error received from DelNetwork gRPC call: "+callText(callErr))
		c.byPrevResult(prev, nil)
		c.forgetWithoutDaemon()
		return nil
	}
	if reply.Unknown {
		c.log.Info("Container " + c.containerID + " not found")
		if prev == nil {
			// This is the second DEL of every pod: kubelet stops each sandbox twice.
			c.log.Debug(noPrevResult)
		} else {
			c.byPrevResult(prev, reply.Allocations)
		}
		// A DEL before this one may have died after the daemon's answer.
		if len(reply.Allocations) == 0 { // otherwise a newer sandbox of the pod has the policies
			c.forgetPolicy(reply.NetworkPolicyMode)
		}
		return nil
	}
	c.log.Info("Received del network response from ipamd for pod " + c.pod.podName + " namespace " + c.pod.podNamespace +
		" sandbox " + c.containerID + ": " + delReplyText(reply))
	if !reply.Success {
		return &cniError{code: codeInternal, msg: delPrefix + textNotProcessed, cause: cause.Code(reply.Cause), details: reply.Detail}
	}
	handled, err = c.byReply(reply, asked)
	if handled && err == nil {
		c.forgetPolicy(reply.NetworkPolicyMode)
	}
	return err
}

// promptly is how long after the request to the daemon its answer may be used without a
// check. An address is in cooldown for seconds before another pod gets it, but a process
// can be frozen for longer. The check lists the host's routes, a cost that the usual DEL
// avoids.
const promptly = 100 * time.Millisecond

// byReply tears down what the daemon, called at the time asked, says the sandbox had. It
// does not handle a repeated DEL of a branch ENI, which must not affect a new pod with the
// same VLAN id.
func (c *command) byReply(reply *cniwire.DelReply, asked time.Time) (handled bool, _ *cniError) {
	if reply.PodVLANID != 0 && c.netns == "" {
		return false, nil
	}
	some := false
	for i, a := range reply.Allocations {
		text := a.IPv4
		if text == "" {
			text = a.IPv6
		}
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		some = true
		hostLink := ""
		if c.pod.podName != "" {
			hostLink = netnames.HostVeth(c.conf.VethPrefix, c.pod.podNamespace, c.pod.podName, i)
		}
		if reply.PodVLANID != 0 {
			_, err = c.teardownBranch(&branchPod{vlan: int(reply.PodVLANID), address: address.Unmap(), hostLink: hostLink})
		} else {
			if hostLink != "" && c.Now().Sub(asked) > promptly && c.anotherPods(address, hostLink) {
				continue
			}
			if err = c.teardown(address, int(a.RouteTable), 0); err != nil {
				err = errors.New(teardownText(err, address, int(a.RouteTable)))
			}
		}
		if err != nil {
			return true, internal(cause.PodNetworkTeardown, delPrefix+textTornDown+err.Error())
		}
	}
	if !some {
		c.log.Warn("The daemon's reply has no address, nothing to tear down")
	}
	return true, nil
}

// anotherPods reports whether another pod has got the address since, so that its state
// must not be removed; false if that is unknown.
func (c *command) anotherPods(address netip.Addr, hostLink string) bool {
	other, err := apply.LeadsElsewhere(address, hostLink)
	if err != nil {
		c.log.Warn("Cannot determine the current owner of " + address.String() + ": " + err.Error())
	}
	if other {
		c.log.Info("Address " + address.String() + " belongs to another pod now")
	}
	return other && err == nil
}

// teardown removes one address; vlan is 0 for an ordinary pod.
func (c *command) teardown(address netip.Addr, table, vlan int) error {
	c.log.Debug("TeardownPodNetwork: containerAddr=" + addressText(address) + ", routeTable=" + strconv.Itoa(table))
	t, err := rules.NewTeardown(address, table)
	if vlan != 0 {
		t, err = rules.NewBranchTeardown(address, vlan)
	}
	if err != nil {
		return err
	}
	routeErr, err := apply.Teardown(t)
	if err != nil {
		return err
	}
	at := ", containerAddr=" + addressText(address) + ", rtTable=main"
	c.log.Debug("Successfully deleted toContainer rule" + at)
	if routeErr != nil {
		c.log.Warn("Failed to delete container route" + at + ": " + routeErr.Error())
	} else {
		c.log.Debug("Successfully deleted container route" + at)
	}
	return nil
}
