package vpc

import (
	"errors"
	"net/netip"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
)

// statusDeadline limits the wait for the daemon's sign of life.
const statusDeadline = time.Second

// status is the STATUS command. It fails when no ADD can succeed, and with a different
// code when running pods are cut off. A pool without a free address is neither: see
// docs/decisions/014-verbs.md.
func (c *command) status(confErr error) *cniError {
	c.log = newLog(&c.conf, c.Now, c.Stderr)
	defer c.log.Flush()
	bad := func(code int, why cause.Code, text, details string) *cniError {
		return c.fail(&cniError{code: code, msg: statusPrefix + text, cause: why, details: details})
	}
	if confErr != nil {
		return bad(codeNotAvailable, cause.InvalidConfig, textBadConfig+confErr.Error(), settingDetails(confErr))
	}
	c.logRequest("status")
	off, err := c.unreachable()
	if err != nil {
		c.log.Warn("The rules of pods are not checked: " + err.Error())
	}
	branches, err := c.unreachableBranches()
	if err != nil {
		c.log.Warn("The rules of pods with branch ENIs are not checked: " + err.Error())
	}
	if off = append(off, branches...); len(off) > 0 {
		return bad(codeLimited, cause.PodNetworkChanged, "the rules of "+strconv.Itoa(len(off))+" running pods are missing, the first is "+off[0].Address.String()+
			" behind "+off[0].HostLink, "look for what else changes rules on the node (systemd-networkd, NetworkManager, nm-cloud-setup)")
	}
	if err := c.alive(); err != nil {
		return bad(codeNotAvailable, callCause(err), "ipamd does not answer", callDetails(c.Socket, err))
	}
	return nil
}

// statusMinAge is the minimum age of an allocation whose rules STATUS checks: the daemon
// records it before ADD creates them, and after a DEL that came first they are gone.
const statusMinAge = time.Minute

// unreachable lists the running pods that the host cannot reach.
func (c *command) unreachable() ([]apply.PodRoute, error) {
	list, err := c.allocations()
	if errors.Is(err, unix.ENOENT) {
		return nil, nil // no pods yet
	}
	if err != nil {
		return nil, err
	}
	// If a pod has several sandboxes, only the newest has the links.
	type podName struct{ namespace, name string }
	youngest := map[podName]*netconf.Allocation{}
	for i := range list {
		a := &list[i]
		pod := podName{a.PodNamespace, a.PodName}
		if old := youngest[pod]; a.PodName != "" && (old == nil || old.AllocatedAt < a.AllocatedAt) {
			youngest[pod] = a
		}
	}
	var pods []apply.PodRoute
	old := c.Now().Add(-statusMinAge).UnixNano()
	for i := range list {
		a := &list[i]
		young := youngest[podName{a.PodNamespace, a.PodName}]
		if young == nil || young.Attachment != a.Attachment || a.AllocatedAt > old {
			continue
		}
		// The route shows which of the pod's links has the address.
		for nth := range interfacesOf(list, a) {
			pods = append(pods, apply.PodRoute{Address: a.Address, HostLink: c.hostLinkOf(a, nth)})
		}
	}
	return apply.Unreachable(pods)
}

// unreachableBranches lists the unreachable pods with branch ENIs, which are not in the
// daemon's checkpoint. It holds the lock that ADD and DEL of such pods take, so their age
// does not matter.
func (c *command) unreachableBranches() ([]apply.PodRoute, error) {
	notes, err := openRecords(c.Records)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer notes.close()
	if !notes.locked {
		return nil, errLockHeld
	}
	list, err := notes.list()
	if err != nil {
		return nil, err
	}
	var pods []apply.PodRoute
	for _, r := range list {
		address, err := netip.ParseAddr(r.Address)
		if _, ok := netnames.BranchTable(r.VLAN); err == nil && ok {
			pods = append(pods, apply.PodRoute{Address: address, HostLink: r.HostLink, VLAN: r.VLAN})
		}
	}
	return apply.Unreachable(pods)
}

// alive waits for a sign of life: a running daemon closes a connection whose write side
// has been shut down without a request.
func (c *command) alive() error {
	call, err := dial(c.Socket, statusDeadline, c.Now)
	if err != nil {
		return err
	}
	defer call.close()
	if err := unix.Shutdown(call.fd, unix.SHUT_WR); err != nil {
		return err
	}
	for {
		if err := call.timeout(statusDeadline); err != nil {
			return err
		}
		var b [1]byte
		n, err := unix.Read(call.fd, b[:])
		switch {
		case errors.Is(err, unix.EINTR), n > 0:
		case err == nil, errors.Is(err, unix.ECONNRESET):
			return nil
		default:
			return err
		}
	}
}
