package vpc

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
)

// gc is the GC command. Whatever the daemon has allocated in this network to attachments
// that are not on the runtime's list is removed as by DEL, and so is the link, so that a
// leftover sandbox cannot go on using an address that another pod gets. It continues after
// failures. Without a list it does nothing.
func (c *command) gc(confErr error) *cniError {
	c.log = newLog(&c.conf, c.Now, c.Stderr)
	defer c.log.Flush()
	bad := func(code int, why cause.Code, text, details string) *cniError {
		return c.fail(&cniError{code: code, msg: gcPrefix + text, cause: why, details: details})
	}
	if confErr != nil {
		return bad(codeInternal, cause.InvalidConfig, textBadConfig+confErr.Error(), settingDetails(confErr))
	}
	valid, given, err := netconf.ValidAttachments(c.stdin)
	if err != nil {
		return bad(codeDecoding, cause.InvalidRequest, err.Error(), "")
	}
	c.logRequest("gc")
	if !given {
		c.log.Warn("Nothing is collected: the configuration has no list of valid attachments")
		return nil
	}
	branches, collected, branchErr := c.collectBranches(valid)
	list, err := c.allocations()
	if errors.Is(err, unix.ENOENT) {
		c.log.Info("There are no allocations to collect: there is no " + c.Checkpoint)
		err = nil
	}
	if err != nil {
		return bad(codeIO, cause.CheckpointUnreadable, err.Error(), "")
	}
	stale := staleOf(list, c.conf.Name, valid)
	removed, why, err := c.collect(stale)
	found, removed := branches+len(stale), collected+removed
	c.log.Info("Collected " + strconv.Itoa(removed) + " of " + strconv.Itoa(found) + " attachments that are not valid")
	if err == nil && branchErr != nil {
		err, why = branchErr, cause.PodNetworkTeardown
	}
	if err == nil {
		return nil
	}
	failure := &cniError{code: codeInternal, cause: why, msg: gcPrefix + strconv.Itoa(found-removed) + " of " + strconv.Itoa(found) +
		" attachments are not removed, the last because of: " + err.Error()}
	var down *callError
	if errors.As(err, &down) {
		failure.code, failure.details = codeTryAgain, callDetails(c.Socket, down.err)
	}
	return c.fail(failure)
}

// staleOf returns the network's allocations without a valid attachment.
func staleOf(list []netconf.Allocation, network string, valid []netconf.Attachment) []netconf.Allocation {
	keep := make(map[netconf.Attachment]bool, len(valid))
	for _, a := range valid {
		keep[a] = true
	}
	var out []netconf.Allocation
	for _, a := range list {
		if a.NetworkName == network && !keep[a.Attachment] {
			out = append(out, a)
		}
	}
	return out
}

// callError is a call that did not reach the daemon: further calls will not either.
type callError struct{ err error }

func (e *callError) Error() string {
	return "Error received from DelNetwork gRPC call: " + callText(e.err)
}
func (e *callError) Unwrap() error { return e.err }

// collect removes attachments. It returns how many, and the last failure with its cause.
func (c *command) collect(stale []netconf.Allocation) (removed int, why cause.Code, last error) {
	for i := range stale {
		code, err := c.collectOne(&stale[i], interfacesOf(stale, &stale[i]))
		if err == nil {
			removed++
			continue
		}
		why, last = code, err
		c.log.Error(code, "Attachment "+stale[i].Attachment.ContainerID+" "+stale[i].Attachment.IfName+" is not removed: "+err.Error())
		var down *callError
		if errors.As(err, &down) {
			break
		}
	}
	return removed, why, last
}

// interfacesOf counts the interfaces of an allocation's attachment: one per address; which
// has which address is unknown.
func interfacesOf(list []netconf.Allocation, a *netconf.Allocation) (n int) {
	for i := range list {
		if list[i].Attachment == a.Attachment && list[i].NetworkName == a.NetworkName {
			n++
		}
	}
	return n
}

func (c *command) collectOne(a *netconf.Allocation, interfaces int) (cause.Code, error) {
	c.containerID, c.ifName = a.Attachment.ContainerID, a.Attachment.IfName
	c.pod = podArgs{podName: a.PodName, podNamespace: a.PodNamespace}
	for nth := range interfaces {
		dropped, err := apply.DropLink(a.Address, c.hostLinkOf(a, nth))
		if err != nil {
			return cause.PodNetworkTeardown, err
		}
		if dropped {
			c.log.Info("Deleted host link " + c.hostLinkOf(a, nth) + " of the sandbox " + c.containerID)
		}
	}
	asked := c.Now()
	reply, err := c.delNetwork("PodDeleted", "", delDeadline)
	if err != nil {
		return callCause(err), &callError{err}
	}
	switch {
	case reply.Unknown: // removed in the meantime
		return "", nil
	case !reply.Success:
		return cause.Code(reply.Cause), errors.New(textNotProcessed + ": " + causeText(reply.Cause, reply.Detail))
	}
	handled, failure := c.byReply(reply, asked)
	if failure != nil {
		return failure.cause, errors.New(failure.msg)
	}
	if handled {
		c.forgetPolicy(reply.NetworkPolicyMode)
	}
	c.log.Info("Released " + a.Address.String() + " of pod " + a.PodNamespace + "/" + a.PodName + ", sandbox " + c.containerID)
	return "", nil
}
