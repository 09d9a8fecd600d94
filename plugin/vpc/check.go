package vpc

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
	"cnictl/plugin/podnet/rules"
)

// check is the CHECK command. It compares the pod's network with what ADD left, and
// changes nothing. Without a previous result of this pod there is nothing to compare with,
// and CHECK succeeds, as upstream's does.
func (c *command) check(confErr error) *cniError {
	c.log = newLog(&c.conf, c.Now, c.Stderr)
	defer c.log.Flush()
	bad := func(why cause.Code, text, details string) *cniError {
		return c.fail(&cniError{code: codeInternal, msg: checkPrefix + text, cause: why, details: details})
	}
	if confErr != nil {
		return bad(cause.InvalidConfig, textBadConfig+confErr.Error(), settingDetails(confErr))
	}
	prev, err := c.conf.PrevResult()
	if err != nil {
		return bad(cause.InvalidRequest, textBadConfig+err.Error(), "")
	}
	c.logRequest("check")
	pod, err := parseArgs(c.args)
	if err != nil {
		return bad(cause.InvalidRequest, textBadArgsAdd+err.Error(), argsDetails(c.args))
	}
	c.pod = pod
	want, err := c.checked(newAttachment(c, prev))
	if err != nil {
		return bad(cause.InvalidRequest, err.Error(), "")
	}
	if want == nil {
		return nil
	}
	ns, err := apply.OpenNetns(c.netns)
	if err != nil {
		var notNS *apply.NetnsError
		errors.As(err, &notNS)
		return bad(netnsCause(err), netnsText(notNS), netnsDetails(err))
	}
	defer ns.Close()
	missing, err := apply.Missing(ns, *want)
	if err != nil {
		return bad(cause.Internal, "read the pod's network: "+err.Error(), "")
	}
	if text := c.checkAllocation(want); text != "" {
		missing = append(missing, text)
	}
	if len(missing) > 0 {
		return bad(cause.PodNetworkChanged, textDiffers+strings.Join(missing, "; "), "delete the pod to have its network recreated; if it happens again, "+
			"look for what else changes links and rules on the node (systemd-networkd, NetworkManager, nm-cloud-setup)")
	}
	c.log.Info("The network of the pod is as ADD left it")
	return nil
}

// checked returns the state that CHECK expects; nil if it cannot be determined.
func (c *command) checked(prev *attachment) (*rules.Pod, error) {
	if prev == nil {
		c.log.Info("There is no previous result of this pod to compare with")
		return nil, nil
	}
	if prev.dummy.MAC != "0" {
		return c.checkedBranch(prev)
	}
	list, err := prev.interfaces()
	if err != nil {
		return nil, err
	}
	want := make([]rules.Attachment, 0, len(list))
	for i, a := range list {
		if a.hostLink == "" {
			return nil, errors.New("the previous result does not name the host's end of " + netnames.PodInterface(c.ifName, i))
		}
		want = append(want, rules.Attachment{Pair: ends(a.hostLink, netnames.PodInterface(c.ifName, i)), Address: a.address, Table: a.table})
	}
	p, err := rules.NewPod(want...)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// ends is a pair of which only the names are known.
func ends(hostLink, podLink string) rules.Pair {
	return rules.Pair{Host: netstate.End{Name: hostLink}, Pod: netstate.End{Name: podLink}}
}

// checkedBranch returns the expected state of a pod with a branch ENI. The name of the
// host end shows the mode in which it was set up.
func (c *command) checkedBranch(prev *attachment) (*rules.Pod, error) {
	vlan, err := strconv.Atoi(prev.dummy.MAC)
	if err != nil {
		return nil, errors.New(textMalformedVLAN + prev.dummy.MAC)
	}
	address, err := prev.onlyAddress()
	if err != nil {
		return nil, err
	}
	gateway, err := netip.ParseAddr(prev.gateway())
	if err != nil {
		return nil, errors.New("the previous result has no gateway of the branch ENI's subnet")
	}
	hostLink := prev.hostLink()
	eni := rules.BranchENI{VLAN: vlan, Gateway: gateway, Strict: strings.HasPrefix(hostLink, netnames.BranchVethPrefix)}
	if b := c.branchByRecord(); b != nil {
		eni.MAC = *b.recorded
	}
	p, err := rules.NewBranchPod(ends(hostLink, c.ifName), address, eni)
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// checkAllocation compares with the daemon's checkpoint. It returns an empty string if
// that matches or cannot be read. The daemon does not manage branch ENIs.
func (c *command) checkAllocation(p *rules.Pod) string {
	if p.VLAN != nil {
		return ""
	}
	list, err := c.allocations()
	if err != nil {
		c.log.Warn("The allocation is not checked: " + err.Error())
		return ""
	}
	own := netconf.Attachment{ContainerID: c.containerID, IfName: c.ifName}
	var has []netip.Addr
	recovered := map[netip.Addr]string{}
	for _, a := range list {
		if a.NetworkName == netnames.RecoveredNetwork {
			recovered[a.Address] = a.Attachment.ContainerID
			continue
		}
		migrated := a.NetworkName == netnames.MigratedNetwork && a.Attachment.ContainerID == c.containerID
		if migrated || a.NetworkName == c.conf.Name && a.Attachment == own {
			has = append(has, a.Address)
		}
	}
	for i := range p.Interfaces {
		address := p.Interfaces[i].Address.Addr()
		switch {
		case slices.Contains(has, address), len(has) == 0 && recovered[address] == p.Interfaces[i].Pair.Host.Name:
		case len(has) == 0:
			return "ipamd has no allocation for the sandbox"
		default:
			return "ipamd has allocated " + joined(has) + " to the sandbox, not " + address.String()
		}
	}
	return ""
}

func joined(list []netip.Addr) string {
	texts := make([]string, len(list))
	for i := range list {
		texts[i] = list[i].String()
	}
	return strings.Join(texts, " and ")
}

// maxCheckpoint limits the size of the file; the largest on a node has 100 KB.
const maxCheckpoint = 16 << 20

// allocations reads the daemon's checkpoint, which the daemon writes before it answers an
// ADD. The error is ENOENT if the daemon has not written one there.
func (c *command) allocations() ([]netconf.Allocation, error) {
	fd, err := unix.Open(c.Checkpoint, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, readError(c.Checkpoint, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, readError(c.Checkpoint, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > maxCheckpoint {
		return nil, errors.New("read " + c.Checkpoint + ": not a regular file of at most 16 MiB")
	}
	file := make([]byte, st.Size)
	for n := 0; n < len(file); {
		got, err := unix.Read(fd, file[n:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, readError(c.Checkpoint, err)
		case got == 0:
			return nil, errors.New("read " + c.Checkpoint + ": it was truncated while being read")
		}
		n += max(got, 0)
	}
	list, err := netconf.Allocations(file)
	if err != nil {
		return nil, errors.New("read " + c.Checkpoint + ": " + err.Error())
	}
	return list, nil
}

// fileError is a failed operation on a file.
type fileError struct {
	verb, path string
	err        error
}

func readError(path string, err error) error { return &fileError{"read", path, err} }

func (e *fileError) Error() string { return e.verb + " " + e.path + ": " + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

// hostLinkOf is the host end of the nth interface of an allocation's pod.
func (c *command) hostLinkOf(a *netconf.Allocation, nth int) string {
	return netnames.HostVeth(c.conf.VethPrefix, a.PodNamespace, a.PodName, nth)
}
