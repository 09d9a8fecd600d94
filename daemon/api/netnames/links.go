package netnames

import (
	"strconv"
	"strings"
)

const (
	// DefaultVethPrefix begins the names of host links of ordinary pods.
	DefaultVethPrefix = "eni"
	// BranchVethPrefix begins the names of host links of branch-ENI pods in strict mode.
	BranchVethPrefix = "vlan"
	// MaxVethPrefix is the longest prefix that still leaves room for the hash:
	// IFNAMSIZ is 16 with the final NUL.
	MaxVethPrefix = 4
	// DummyPrefix begins the name of an interface that exists only in results: it carries
	// the VLAN id and the device number of a pod.
	DummyPrefix = "dummy"

	hashDigits = 11
)

// Hash returns the part of a host link name that identifies the pod: the first 11
// hexadecimal digits of SHA-1 over "<namespace>.<name>", or over
// "<namespace>.<name>.<index>" for further interfaces of the pod (index > 0).
func Hash(ns, name string, index int) string {
	var stack [128]byte
	text := append(stack[:0], ns...)
	text = append(text, '.')
	text = append(text, name...)
	if index > 0 {
		text = append(text, '.')
		text = strconv.AppendInt(text, int64(index), 10)
	}
	sum := sum1(text)
	const hex = "0123456789abcdef"
	var digits [2 * len(sum)]byte
	for i, v := range sum {
		digits[2*i], digits[2*i+1] = hex[v>>4], hex[v&15]
	}
	return string(digits[:hashDigits])
}

// Hashes returns the hashes of the host links of a pod with a number of interfaces; 0 means 1.
func Hashes(ns, name string, interfaces int) []string {
	out := make([]string, max(interfaces, 1))
	for i := range out {
		out[i] = Hash(ns, name, i)
	}
	return out
}

// HostVeth returns the name of the host end of a pod's veth pair.
func HostVeth(prefix, ns, name string, index int) string {
	return prefix + Hash(ns, name, index)
}

// PodInterface returns the name of interface index inside the pod: ifName itself for the
// first, mNicIf1, mNicIf2, ... for the others.
func PodInterface(ifName string, index int) string {
	if index == 0 {
		return ifName
	}
	return "mNicIf" + strconv.Itoa(index)
}

// Dummy returns the name of a pod's result-only interface.
func Dummy(ns, name string) string { return DummyPrefix + Hash(ns, name, 0) }

// VLANDevice returns the name of the VLAN device of a branch ENI.
func VLANDevice(vlan int) string { return vlanDevicePrefix + strconv.Itoa(vlan) }

const vlanDevicePrefix = "vlan.eth."

// VLANOfDevice returns the VLAN id of a branch ENI's device. It returns false for other
// links.
func VLANOfDevice(name string) (vlan int, ok bool) {
	digits, ok := strings.CutPrefix(name, vlanDevicePrefix)
	if !ok {
		return 0, false
	}
	vlan, err := strconv.Atoi(digits)
	if err != nil || vlan < 1 || vlan > MaxVLAN || VLANDevice(vlan) != name {
		return 0, false
	}
	return vlan, true
}

// ValidName applies the CNI specification's rule for network names and container ids: a
// letter or digit, then letters, digits, '_', '.' and '-'.
func ValidName(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '_' || c == '.' || c == '-'):
		default:
			return false
		}
	}
	return s != ""
}
