package vpc

import (
	"net/netip"
	"time"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/podnet/rules"
)

var (
	ParseArgs          = parseArgs
	TeardownText       = teardownText
	BranchTeardownText = branchTeardownText
)

// Promptly is how long a DEL may take before it checks the address's owner again.
const Promptly = promptly

// ResultJSON is the result of a pod with the given facts.
func ResultJSON(version, hostLink, podLink, hash, netns, address string, table, device int) []byte {
	p := &plan{hash: hash, device: device, nics: []nic{{hostLink: hostLink, podLink: podLink, address: netip.MustParseAddr(address), table: table}}}
	return newPodResult(p, netns).JSON(version)
}

// NIC is an interface of a result.
type NIC struct {
	HostLink, PodLink, Address string
	Table                      int
}

// PodJSON is the result of a pod of any kind; vlan is 0 for those without a branch ENI.
func PodJSON(version, hash, netns string, device, vlan int, gateway string, list ...NIC) []byte {
	p := &plan{hash: hash, device: device}
	if vlan != 0 {
		p.branch = &rules.BranchENI{VLAN: vlan, Gateway: netip.MustParseAddr(gateway)}
	}
	for _, n := range list {
		p.nics = append(p.nics, nic{hostLink: n.HostLink, podLink: n.PodLink, address: netip.MustParseAddr(n.Address), table: n.Table})
	}
	return newPodResult(p, netns).JSON(version)
}

// ErrorJSON is an error as printed.
func ErrorJSON(code int, msg string, why cause.Code, details string) []byte {
	return (&cniError{code: code, msg: msg, cause: why, details: details}).printable().JSON()
}

// Fields returns the fields of podArgs.
func (a podArgs) Fields() (name, namespace, infra, uid string) {
	return a.podName, a.podNamespace, a.infraContainerID, a.podUID
}

// CallText is the message of a failed call.
func CallText(socket string, timeout time.Duration, slow func()) string {
	c, err := dial(socket, timeout, time.Now)
	if err == nil {
		defer c.close()
		if err = c.send([]byte{0, 0, 0, 0}); err == nil {
			_, err = c.receive(slow)
		}
	}
	if err == nil {
		return ""
	}
	return callText(err)
}
