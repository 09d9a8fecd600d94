package netconf

import "strconv"

// BranchRecord is the plugin's record of a pod with a branch ENI, for DEL, CHECK and GC.
// The result has no field for the ENI's MAC, which distinguishes its VLAN device from that
// of a pod that got the VLAN id later. The file is private to the plugin.
type BranchRecord struct {
	NetworkName  string // empty if written by a plugin that did not record it
	Attachment   Attachment
	PodNamespace string
	PodName      string
	VLAN         int
	MAC          string // of the branch ENI
	Address      string // of the pod
	HostLink     string
	PolicyMode   string // of network policy; empty if off
}

// ParseBranchRecord parses a record. It checks only the types of fields, except for those
// that identify the sandbox.
func ParseBranchRecord(file []byte) (BranchRecord, error) {
	var r BranchRecord
	if err := checkSyntax(file); err != nil {
		return r, err
	}
	vlan := ""
	d := strictDecoder{cursor: cursor{in: file}}
	d.members("record", []string{"networkName", "containerID", "ifname", "podNamespace", "podName", "vlan", "mac", "address", "hostLink", "policyMode"},
		&r.NetworkName, &r.Attachment.ContainerID, &r.Attachment.IfName, &r.PodNamespace, &r.PodName, &vlan, &r.MAC, &r.Address, &r.HostLink, &r.PolicyMode)
	n, err := strconv.Atoi(vlan)
	if d.err == nil && (err != nil || r.Attachment.ContainerID == "" || r.Attachment.IfName == "") {
		d.fail("record without VLAN id, containerID or ifname")
	}
	if d.err != nil {
		return BranchRecord{}, d.err
	}
	r.VLAN = n
	return r, nil
}
