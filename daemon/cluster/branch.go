package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/lazy"
)

// maxBranchAnnotation bounds the annotation: the controller writes 250 bytes per entry, and
// a pod has few entries.
const maxBranchAnnotation = 64 << 10

// branchGateway6 is the router address in every IPv6 subnet of a VPC.
var branchGateway6 = netip.MustParseAddr("fe80:ec2::1")

var eniID = lazy.Regexp(`^eni-[0-9a-f]{8,17}$`)

// BranchFault classifies what is wrong with a branch annotation; upstream has one log line
// for each.
type BranchFault int

const (
	BranchMissing   BranchFault = iota + 1 // the controller has not written it yet
	BranchMalformed                        // not a JSON array of objects, or an empty one
	BranchInvalid                          // address, MAC or VLAN missing or impossible
	BranchSubnet4                          // subnetCidr is invalid, or does not contain the address
	BranchSubnet6                          // the same for subnetV6Cidr
)

var branchFaults = map[BranchFault]string{
	BranchMissing:   "missing",
	BranchMalformed: "malformed",
	BranchInvalid:   "invalid",
	BranchSubnet4:   "IPv4 subnet",
	BranchSubnet6:   "IPv6 subnet",
}

func (f BranchFault) String() string { return branchFaults[f] }

// BranchError is the error type of ParseBranch.
type BranchError struct {
	Kind BranchFault
	Err  error
}

func (e *BranchError) Error() string {
	return fmt.Sprintf("read annotation vpc.amazonaws.com/pod-eni (%s): %v", e.Kind, e.Err)
}

func (e *BranchError) Unwrap() error { return e.Err }

// branchEntry is an element of the annotation. Keys match in any case: the controller
// writes vlanId, upstream declares vlanID.
type branchEntry struct {
	ENI         string `json:"eniId"`
	MAC         string `json:"ifAddress"`
	IPv4        string `json:"privateIp"`
	IPv6        string `json:"ipv6Addr"`
	VLAN        int    `json:"vlanId"`
	IPv4Subnet  string `json:"subnetCidr"`
	IPv6Subnet  string `json:"subnetV6Cidr"`
	Association string `json:"associationID"`
}

// ParseBranch reads the annotation that the resource controller writes. Only element 0
// counts, as in upstream. Members that older controllers do not write are required only if
// the node's address family needs them. Errors are *BranchError.
func ParseBranch(annotation string, ipv6 bool) (Branch, error) {
	if annotation == "" {
		return Branch{}, &BranchError{BranchMissing, errors.New("it is missing; the VPC resource controller writes it after creating the branch ENI")}
	}
	entry, err := firstBranch(annotation)
	if err != nil {
		return Branch{}, &BranchError{BranchMalformed, err}
	}
	mac, err := parseMAC(entry.MAC)
	if err != nil {
		return Branch{}, &BranchError{BranchInvalid, err}
	}
	if _, ok := netnames.BranchTable(entry.VLAN); !ok {
		return Branch{}, &BranchError{BranchInvalid, fmt.Errorf("vlanId is %d, want 1 to %d, the ids that the VPC resource controller gives: others have no route table", entry.VLAN, netnames.MaxVLAN)}
	}
	out := Branch{MAC: mac, VLAN: entry.VLAN}
	if eniID().MatchString(entry.ENI) {
		out.ENI = entry.ENI
	}
	if ipv6 {
		out.Gateway = branchGateway6
		out.Address, err = branchAddress6(entry)
	} else {
		out.Address, out.Gateway, err = branchAddress4(entry)
	}
	if err != nil {
		return Branch{}, err
	}
	return out, nil
}

// BranchENIs returns the branch ENIs that the annotation names, in all elements and whatever else is wrong with
// it: what a pod names may be in use. They are as written, so not to be relied on.
func BranchENIs(annotation string) (ids []string) {
	elements, err := branchElements(annotation)
	if err != nil {
		return nil
	}
	for _, element := range elements {
		var entry branchEntry
		if json.Unmarshal(element, &entry) == nil && entry.ENI != "" {
			ids = append(ids, entry.ENI)
		}
	}
	return ids
}

func firstBranch(annotation string) (branchEntry, error) {
	elements, err := branchElements(annotation)
	if err != nil {
		return branchEntry{}, err
	}
	if len(elements) == 0 {
		return branchEntry{}, errors.New("it names no branch ENI")
	}
	var entry branchEntry
	if err := json.Unmarshal(elements[0], &entry); err != nil {
		return branchEntry{}, err
	}
	return entry, nil
}

// branchElements returns the elements of the annotation. Only the first must be a valid
// entry: another version may append elements of any form.
func branchElements(annotation string) (elements []json.RawMessage, err error) {
	if len(annotation) > maxBranchAnnotation {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(annotation), maxBranchAnnotation)
	}
	err = json.Unmarshal([]byte(annotation), &elements)
	return elements, err
}

// branchAddress4 returns the address and its gateway, the first address of the subnet.
func branchAddress4(e branchEntry) (addr, gateway netip.Addr, err error) {
	addr, err = netip.ParseAddr(e.IPv4)
	if err != nil || !addr.Is4() || !addr.IsGlobalUnicast() {
		return addr, gateway, &BranchError{BranchInvalid, fmt.Errorf("privateIp is %s, want an IPv4 address", brief(e.IPv4))}
	}
	subnet, err := netip.ParsePrefix(e.IPv4Subnet)
	if err != nil || !subnet.Addr().Is4() {
		return addr, gateway, &BranchError{BranchSubnet4, fmt.Errorf("subnetCidr is %s, want an IPv4 range", brief(e.IPv4Subnet))}
	}
	subnet = subnet.Masked()
	gateway = subnet.Addr().Next()
	if !subnet.Contains(addr) || !subnet.Contains(gateway) || addr == subnet.Addr() || addr == gateway {
		// The annotation holds the current subnet, not the ENI's: if the custom-networking
		// subnet changed in between, the pod's gateway is elsewhere.
		return addr, gateway, &BranchError{BranchSubnet4, fmt.Errorf("privateIp %s is not an address for pods in subnetCidr %s; delete the pod so that it gets another branch ENI", addr, subnet)}
	}
	return addr, gateway, nil
}

func branchAddress6(e branchEntry) (netip.Addr, error) {
	addr, err := netip.ParseAddr(e.IPv6)
	if err != nil || !addr.Is6() || addr.Is4In6() || addr.Zone() != "" || !addr.IsGlobalUnicast() {
		return netip.Addr{}, &BranchError{BranchInvalid, fmt.Errorf("ipv6Addr is %s, want an IPv6 address; the subnet must auto-assign IPv6 addresses", brief(e.IPv6))}
	}
	subnet, err := netip.ParsePrefix(e.IPv6Subnet)
	if err != nil || !subnet.Addr().Is6() || subnet.Addr().Is4In6() {
		return netip.Addr{}, &BranchError{BranchSubnet6, fmt.Errorf("subnetV6Cidr is %s, want an IPv6 range", brief(e.IPv6Subnet))}
	}
	if subnet = subnet.Masked(); !subnet.Contains(addr) {
		return netip.Addr{}, &BranchError{BranchSubnet6, fmt.Errorf("ipv6Addr %s is outside of subnetV6Cidr %s; delete the pod so that it gets another branch ENI", addr, subnet)}
	}
	return addr, nil
}

// parseMAC accepts a unicast MAC of six octets in colon form and returns it in lower case.
func parseMAC(s string) (string, error) {
	refused := fmt.Errorf("ifAddress is %s, want a unicast MAC such as 06:25:70:70:b1:69", brief(s))
	const form = "xx:xx:xx:xx:xx:xx"
	if len(s) != len(form) {
		return "", refused
	}
	mac := strings.ToLower(s)
	for i := range form {
		if form[i] == ':' && mac[i] != ':' || form[i] == 'x' && !strings.ContainsRune("0123456789abcdef", rune(mac[i])) {
			return "", refused
		}
	}
	// The lowest bit of the first octet means multicast.
	if strings.ContainsRune("13579bdf", rune(mac[1])) || mac == "00:00:00:00:00:00" {
		return "", refused
	}
	return mac, nil
}
