package vpc

import (
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/cniwire"
)

const (
	// policyDeadline is above what the daemon takes to say that the policy agent does
	// not answer it.
	policyDeadline = 15 * time.Second
	// forgetDeadline is short: the daemon answers a deletion at once.
	forgetDeadline = 2 * time.Second
)

// enforcePolicy has the policy agent told of the pod. Where that fails the pod's network
// stays, as in the original: the runtime's DEL follows, and only a DEL that finds the
// allocation has the agent told that the pod is gone.
func (c *command) enforcePolicy(p *plan) *cniError {
	if p.policy == "" {
		c.log.info(callerAdd, "NETWORK_POLICY_ENFORCING_MODE is not set")
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
	c.log.debug(callerPolicy, "Network policies of the pod are enforced, mode "+p.policy)
	return nil
}

// forgetPolicy has the policy agent told that the pod is gone. It never fails: the
// daemon tells an agent that is away later.
func (c *command) forgetPolicy(mode string) {
	if mode == "" {
		c.log.info(callerDel, "NETWORK_POLICY_ENFORCING_MODE is not set")
		return
	}
	reply, err := c.askPolicy(&cniwire.PolicyRequest{
		PodName: c.pod.podName, PodNamespace: c.pod.podNamespace, ContainerID: c.containerID, Delete: true,
	}, forgetDeadline)
	switch {
	case err != nil:
		c.log.error(callerPolicy, callCause(err), "Failed to connect to network policy agent: "+callText(err))
	case !reply.Success:
		c.log.error(callerPolicy, cause.Code(reply.Cause), "Failed to delete pod network policy: "+causeText(reply.Cause, reply.Detail))
	}
}

func (c *command) askPolicy(r *cniwire.PolicyRequest, timeout time.Duration) (*cniwire.PolicyReply, error) {
	call, err := c.ask(cniwire.AppendPolicyRequest(make([]byte, 0, 256), r), timeout, callerPolicy)
	if err != nil {
		return nil, err
	}
	defer call.close()
	answer, err := call.receive(c.log.flush)
	if err != nil {
		return nil, err
	}
	return cniwire.DecodePolicyReply(answer)
}
