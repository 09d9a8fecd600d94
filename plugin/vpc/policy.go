package vpc

import (
	"errors"
	"slices"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/podnet/rules"
)

const (
	// policyDeadline is longer than the daemon's own timeout for the policy agent.
	policyDeadline = 15 * time.Second
	// forgetDeadline is short: the daemon answers a deletion immediately.
	forgetDeadline = 2 * time.Second
	// agentDeadline limits the agent's own work, where the plugin has to wait for it.
	agentDeadline = 10 * time.Second
)

// enforcePolicy notifies the policy agent of the pod. If that fails, the pod's network
// stays, as in upstream: the runtime then calls DEL, which notifies the agent that the pod
// is gone.
func (c *command) enforcePolicy(p *plan) *cniError {
	if p.policy == "" {
		c.log.Info("NETWORK_POLICY_ENFORCING_MODE is not set")
		return nil
	}
	reply, err := c.askPolicy(&cniwire.PolicyRequest{
		PodName: c.pod.podName, PodNamespace: c.pod.podNamespace, ContainerID: c.containerID,
		Mode: p.policy, Interfaces: int32(len(p.nics)),
	}, policyDeadline)
	switch {
	case err != nil:
		return &cniError{code: codeInternal, msg: addPrefix + textNoPolicy, cause: callCause(err), details: callDetails(c.Socket, err)}
	case !reply.Success:
		return &cniError{code: codeInternal, msg: addPrefix + textNoPolicy, cause: cause.Code(reply.Cause), details: reply.Detail}
	}
	c.log.Debug("Network policies of the pod are enforced, mode " + p.policy)
	return nil
}

// forgetPolicy notifies the policy agent that the pod is gone. It never fails: the daemon
// retries while the agent is away.
func (c *command) forgetPolicy(mode string) {
	if mode == "" {
		c.log.Info("NETWORK_POLICY_ENFORCING_MODE is not set")
		return
	}
	if c.newerSandbox(c.legacy) {
		return
	}
	reply, err := c.askPolicy(&cniwire.PolicyRequest{
		PodName: c.pod.podName, PodNamespace: c.pod.podNamespace, ContainerID: c.containerID, Delete: true,
	}, forgetDeadline)
	switch {
	case err != nil:
		c.log.Error(callCause(err), "Failed to connect to network policy agent: "+callText(err))
	case !reply.Success:
		c.log.Error(cause.Code(reply.Cause), "Failed to delete pod network policy: "+causeText(reply.Cause, reply.Detail))
	}
}

// newerSandbox reports whether the pod has another sandbox, which would lose its policies
// because the agent knows pods by name. It looks at the host link of that name, the
// plugin's records and, as the link may not exist yet, the daemon's checkpoint. The daemon
// checks the last itself; alone means that the plugin calls the agent.
func (c *command) newerSandbox(alone bool) bool {
	if c.pod.podName == "" {
		return false
	}
	by := ""
	switch {
	case c.hasAnothersLink():
		by = "the host's link"
	case c.hasAnothersRecord():
		by = "a record in " + c.Records
	case alone && c.hasAnothersAllocation():
		by = c.Checkpoint
	default:
		return false
	}
	c.log.Info("The policy agent is not notified of the sandbox's deletion: another sandbox of the pod is running according to " + by)
	return true
}

// hasAnothersLink also returns true if the owner cannot be determined.
func (c *command) hasAnothersLink() bool {
	hash := netnames.Hash(c.pod.podNamespace, c.pod.podName, 0)
	for _, prefix := range [...]string{c.conf.VethPrefix, netnames.BranchVethPrefix} {
		another, err := apply.AnothersLink(rules.NewPair(c.containerID, prefix+hash, c.ifName, 0), c.netns)
		if err != nil {
			c.log.Warn("Cannot determine the owner of host link " + prefix + hash + ": " + err.Error())
		}
		if another || err != nil {
			return true
		}
	}
	return false
}

func (c *command) hasAnothersRecord() bool {
	notes, err := readRecords(c.Records)
	if err != nil {
		return false // most nodes have no records
	}
	defer notes.close()
	list, _ := notes.list()
	return slices.ContainsFunc(list, func(r netconf.BranchRecord) bool {
		return r.PodNamespace == c.pod.podNamespace && r.PodName == c.pod.podName && r.Attachment.ContainerID != c.containerID
	})
}

func (c *command) hasAnothersAllocation() bool {
	list, err := c.allocations()
	if err != nil {
		c.log.Debug("Cannot read the daemon's allocations, checking only links for other sandboxes of the pod: " + err.Error())
	}
	return slices.ContainsFunc(list, func(a netconf.Allocation) bool {
		return a.PodNamespace == c.pod.podNamespace && a.PodName == c.pod.podName && a.Attachment.ContainerID != c.containerID
	})
}

// askPolicy calls the agent through the daemon. Upstream's daemon does not do that, so
// next to it the plugin calls the agent itself.
func (c *command) askPolicy(r *cniwire.PolicyRequest, timeout time.Duration) (*cniwire.PolicyReply, error) {
	if c.legacy {
		return c.callAgent(r, policyDial)
	}
	call, err := c.ask(cniwire.AppendPolicyRequest(make([]byte, 0, 256), r), timeout)
	if err != nil {
		return nil, err
	}
	defer call.close()
	answer, err := call.receive(c.log.Flush)
	if err != nil {
		return nil, err
	}
	return cniwire.DecodePolicyReply(answer)
}

// callAgent calls the agent directly. It waits up to dial for the agent to listen.
func (c *command) callAgent(r *cniwire.PolicyRequest, dial time.Duration) (*cniwire.PolicyReply, error) {
	c.log.Flush()
	timeout := agentDeadline
	if r.Delete {
		timeout = forgetDeadline
	}
	answer, err := c.callGRPC(c.PolicySocket, dial, timeout, cniwire.AppendPolicyRequest(nil, r))
	var reply *cniwire.PolicyReply
	if err == nil {
		reply, err = cniwire.DecodePolicyReply(answer)
	}
	var refused *cniwire.CallError
	var helper *helperError
	switch {
	case err == nil && reply.Success:
		return reply, nil
	case errors.As(err, &helper):
		return &cniwire.PolicyReply{Cause: string(cause.PolicyAgentUnreachable), Detail: "aws-cni calls the network policy agent only through " + helperProgram + ", " + helperOrigin + ": " + err.Error()}, nil
	case err == nil:
		return &cniwire.PolicyReply{Cause: string(cause.PolicyAgentRefused), Detail: "the network policy agent answers on " + c.PolicySocket + " that it could not enforce the pod's policies"}, nil
	case errors.As(err, &refused) && refused.Answered:
		return &cniwire.PolicyReply{Cause: string(cause.PolicyAgentRefused), Detail: "the network policy agent answers on " + c.PolicySocket + ": " + err.Error()}, nil
	}
	return &cniwire.PolicyReply{Cause: string(cause.PolicyAgentUnreachable), Detail: "the network policy agent does not answer on " + c.PolicySocket + ": " + err.Error()}, nil
}

// forgetWithoutDaemon notifies the agent of a deletion when no daemon answers, so that the
// agent detaches from the pod, although it is unknown whether policies are on. If the
// agent is not running either, there is nothing to detach.
func (c *command) forgetWithoutDaemon() {
	if !listens(c.PolicySocket) || c.newerSandbox(true) {
		return
	}
	reply, err := c.callAgent(&cniwire.PolicyRequest{PodName: c.pod.podName, PodNamespace: c.pod.podNamespace, ContainerID: c.containerID, Delete: true}, 0)
	if err == nil && !reply.Success {
		c.log.Info("The policy agent is not notified of the pod's deletion: " + reply.Detail)
	}
}
