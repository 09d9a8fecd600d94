package vpc

import (
	"errors"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/netstate"
	"cnictl/plugin/netconf"
	"cnictl/plugin/podnet/apply"
)

// attachment is the attachment that the command applies to.
func (c *command) attachment() netconf.Attachment {
	return netconf.Attachment{ContainerID: c.containerID, IfName: c.ifName}
}

// setupBranch puts the network of a pod with a branch ENI into the kernel.
func (c *command) setupBranch(s *apply.Setup, p *plan) error {
	n, mac := &p.nics[0], p.branch.MAC.String()
	c.log.Debug("SetupBranchENIPodNetwork: hostVethName=" + n.hostLink + ", contVethName=" + n.podLink + ", netnsPath=" + c.netns +
		", ipAddr=" + addressText(n.address) + ", vlanID=" + strconv.Itoa(p.branch.VLAN) + ", eniMAC=" + mac + ", subnetGW=" + p.branch.Gateway.String() +
		", parentIfIndex=" + strconv.Itoa(int(p.branch.Trunk)) + ", mtu=" + strconv.Itoa(p.mtu) + ", podSGEnforcingMode=" + c.conf.PodSGEnforcingMode)
	err := s.Links(p.wanted)
	if err == nil {
		err = c.setupVLAN(s, p, mac)
	}
	if err == nil {
		err = s.Connect()
	}
	return err
}

// setupVLAN creates the device of the branch ENI. The record is written first, so that the
// DEL after an ADD that died finds it. The records stay locked until the device exists,
// and no longer: the rest may have to wait, and the record shows others who owns the VLAN
// id.
func (c *command) setupVLAN(s *apply.Setup, p *plan, mac string) error {
	n := &p.nics[0]
	notes, err := c.makeRecords()
	if err == nil {
		defer notes.close()
		err = notes.take(netconf.BranchRecord{
			NetworkName: c.conf.Name, Attachment: c.attachment(), PodNamespace: c.pod.podNamespace, PodName: c.pod.podName,
			VLAN: p.branch.VLAN, MAC: mac, Address: n.address.String(), HostLink: n.hostLink, PolicyMode: p.policy,
		})
	}
	if err != nil {
		// DEL then relies on the kernel's state, as with pods that upstream set up.
		c.log.Warn("The branch ENI of the pod is not recorded: " + err.Error())
	}
	err = s.VLAN()
	if old := s.ReplacedVLAN; old != nil {
		if text := old.MAC.String(); text != mac {
			c.log.Warn("Replaced " + old.Name + " with the MAC " + text + " of another branch ENI: its VLAN id is that of the pod's, " + mac)
		} else {
			c.log.Debug("Successfully deleted old vlan link " + old.Name)
		}
	}
	return err
}

// undo reverts what a failed ADD did. With a branch ENI it locks the records, because
// another pod may have taken the VLAN id or be about to. The record is removed last: DEL
// needs it if the plugin dies here.
func (c *command) undo(s *apply.Setup, p *plan) error {
	if p.branch == nil {
		return s.Undo()
	}
	notes, err := c.openRecords()
	if err != nil {
		return s.Undo() // there are no records
	}
	defer notes.close()
	other, err := notes.holder(p.branch.VLAN, c.attachment())
	if other != nil {
		s.LeaveVLAN(other.Address == p.nics[0].address.String())
	}
	err = errors.Join(err, s.Undo())
	if err == nil {
		notes.remove(c.attachment())
	}
	return err
}

// branchPod is what DEL knows about a pod with a branch ENI.
type branchPod struct {
	vlan     int
	address  netip.Addr
	hostLink string // empty if unknown
	policy   string
	recorded *netstate.MAC // of the branch ENI, from the plugin's record; nil without one
}

// branchByRecord returns the branch pod according to ADD's record; nil without a usable
// one.
func (c *command) branchByRecord() *branchPod {
	rec := c.record(c.attachment())
	if rec == nil {
		return nil
	}
	address, err := netip.ParseAddr(rec.Address)
	mac, ok := netstate.ParseMAC(rec.MAC)
	if err != nil || !ok {
		c.log.Warn("Ignoring the record of a branch ENI: its address is " + strconv.Quote(rec.Address) + ", its MAC " + strconv.Quote(rec.MAC))
		return nil
	}
	return &branchPod{vlan: rec.VLAN, address: address, hostLink: rec.HostLink, policy: rec.PolicyMode, recorded: &mac}
}

// branchByPrevResult returns the branch pod according to the previous result; nil if the
// pod is not one.
func (c *command) branchByPrevResult(prev *attachment) (*branchPod, *cniError) {
	if prev == nil {
		return nil, nil
	}
	vlan, err := strconv.Atoi(prev.dummy.MAC)
	if err != nil {
		return nil, internal(cause.InvalidRequest, delPrefix+textPrevResult+textMalformedVLAN+prev.dummy.MAC)
	}
	if vlan == 0 {
		return nil, nil
	}
	b := &branchPod{vlan: vlan}
	if c.netns == "" {
		return b, nil // whoever owns it
	}
	if b.address, err = prev.onlyAddress(); err != nil {
		return nil, internal(cause.InvalidRequest, delPrefix+textPrevResult+err.Error())
	}
	b.hostLink = prev.hostLink()
	return b, nil
}

// branchDeadline limits how long the DEL of a branch pod waits for the daemon, which need
// not be running.
const branchDeadline = 2e9 // ns

// disconnectBranch handles the DEL of a pod that is known to have a branch ENI without
// relying on the daemon. The daemon is still notified: it may hold something for the pod,
// and the policy agent does.
func (c *command) disconnectBranch(prev *attachment) (handled bool, _ *cniError) {
	b := c.branchByRecord()
	if b == nil {
		var failure *cniError
		if b, failure = c.branchByPrevResult(prev); b == nil {
			return failure != nil, failure
		}
	}
	policy := b.policy
	reply, err := c.delNetwork("PodDeleted", c.pod.podUID, branchDeadline)
	switch {
	case err != nil:
		c.log.Info("The daemon was not notified of the branch ENI's release: " + callText(err))
	case reply.NetworkPolicyMode != "":
		policy = reply.NetworkPolicyMode
	}
	if c.netns == "" && b.recorded == nil {
		c.log.Info("Ignoring DEL of a pod with a branch ENI and without a namespace: the VLAN id may be another pod's")
		return true, nil
	}
	_, failed := c.teardownBranch(b)
	if err == nil {
		c.forgetPolicy(policy)
	} else {
		c.forgetWithoutDaemon()
	}
	if failed != nil {
		return true, internal(cause.PodNetworkTeardown, delPrefix+textPrevResult+failed.Error())
	}
	c.log.Info("Handled CNI del request with prevResult: " + string(c.conf.RawPrevResult))
	return true, nil
}

// teardownBranch removes what belongs to the pod: the VLAN device and the rules of its
// table only if no other pod has got the VLAN id since. The error has upstream's text.
func (c *command) teardownBranch(b *branchPod) (owner, error) {
	own := c.attachment()
	notes, err := c.openRecords()
	switch {
	case err == nil:
		defer notes.close()
	case !errors.Is(err, unix.ENOENT):
		c.log.Warn("Cannot open the records of pods with branch ENIs, checking only the kernel for the owner of the VLAN id: " + err.Error())
	}
	table, _ := netnames.BranchTable(b.vlan)
	owner, err := c.ownerOf(notes, b, own)
	if err != nil {
		return owner, errors.New(textTeardownBr + err.Error())
	}
	switch {
	case owner == ours:
		err = c.teardown(b.address, 0, b.vlan)
	case owner == sameAddress:
		c.log.Info("VLAN id " + strconv.Itoa(b.vlan) + " and address " + b.address.String() + " belong to a newer sandbox of the pod now")
	default:
		c.log.Info("VLAN id " + strconv.Itoa(b.vlan) + " belongs to another pod now")
		if b.hostLink == "" || !c.anotherPods(b.address, b.hostLink) {
			err = c.teardown(b.address, table, 0)
		}
	}
	if err != nil {
		return owner, errors.New(branchTeardownText(err, b.address, b.vlan))
	}
	if notes != nil {
		notes.remove(own)
	}
	return owner, nil
}

// owner says who owns a VLAN id.
type owner uint8

const (
	ours owner = iota
	anothers
	sameAddress // another sandbox, which also has the pod's address
)

// ownerOf decides by the record of another attachment if one exists, then by the MAC in
// our own record, and without a record by where the VLAN's table leads.
func (c *command) ownerOf(notes *records, b *branchPod, own netconf.Attachment) (owner, error) {
	if notes != nil {
		switch other, err := notes.holder(b.vlan, own); {
		case err != nil:
			return ours, err
		case other != nil && other.Address == b.address.String():
			return sameAddress, nil
		case other != nil:
			return anothers, nil
		}
	}
	if _, ok := netnames.BranchTable(b.vlan); !ok {
		return ours, nil // the teardown refuses the id with an error
	}
	if b.recorded != nil {
		other, err := apply.VLANHasOtherMAC(b.vlan, *b.recorded)
		return otherwise(other), err
	}
	other, err := apply.VLANLeadsElsewhere(b.vlan, b.address)
	return otherwise(other), err
}

func otherwise(other bool) owner {
	if other {
		return anothers
	}
	return ours
}

// collectBranches removes, as DEL does, the branch pods recorded in this network without a
// valid attachment.
func (c *command) collectBranches(valid []netconf.Attachment) (found, removed int, last error) {
	notes, err := c.openRecords()
	if errors.Is(err, unix.ENOENT) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	list, err := notes.list()
	notes.close()
	if err != nil {
		return 0, 0, err
	}
	keep := make(map[netconf.Attachment]bool, len(valid))
	for _, a := range valid {
		keep[a] = true
	}
	for _, r := range list {
		if r.NetworkName != c.conf.Name || keep[r.Attachment] {
			continue
		}
		found++
		c.containerID, c.ifName = r.Attachment.ContainerID, r.Attachment.IfName
		c.pod = podArgs{podName: r.PodName, podNamespace: r.PodNamespace}
		if err := c.collectBranch(); err != nil {
			last = err
			c.log.Error(cause.PodNetworkTeardown, "Attachment "+c.containerID+" "+c.ifName+" is not removed: "+err.Error())
			continue
		}
		removed++
		c.log.Info("Released " + r.Address + " of pod " + r.PodNamespace + "/" + r.PodName + ", sandbox " + c.containerID)
	}
	return found, removed, last
}

func (c *command) collectBranch() error {
	b := c.branchByRecord()
	if b == nil {
		return errors.New("its record is damaged")
	}
	_, callErr := c.delNetwork("PodDeleted", "", branchDeadline)
	if callErr != nil {
		c.log.Info("The daemon was not notified of the branch ENI's release: " + callText(callErr))
	}
	owner, err := c.teardownBranch(b)
	if err == nil && callErr == nil && owner == ours {
		c.forgetPolicy(b.policy)
	}
	return err
}
