package hostnet

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"cnictl/daemon/hostnet/rules"
)

// capability is a Linux capability, named as in pod manifests.
type capability struct {
	number uint
	name   string
	use    string
}

// capabilities returns those that a backend needs. Only the tools of the iptables backend
// use a raw socket; the others and the daemon itself use netlink.
func capabilities(backend rules.Backend) []capability {
	needed := []capability{{unix.CAP_NET_ADMIN, "NET_ADMIN", "change links, routes, policy rules and netfilter of the node"}}
	if backend == rules.IPTables {
		needed = append(needed, capability{unix.CAP_NET_RAW, "NET_RAW", "run iptables, whose legacy mode this node has"})
	}
	return needed
}

// CheckCapabilities returns an error that names the capabilities the process lacks; the
// kernel's own errors would not.
func (h *Host) CheckCapabilities() error {
	effective, err := effectiveCapabilities()
	if err != nil {
		return err
	}
	return missing(capabilities(h.inUse().backend), effective)
}

// missing returns an error that names the needed capabilities missing from a bit set.
func missing(needed []capability, effective uint64) error {
	var names, uses []string
	for _, c := range needed {
		if effective&(1<<c.number) == 0 {
			names = append(names, c.name)
			uses = append(uses, c.name+" to "+c.use)
		}
	}
	if names == nil {
		return nil
	}
	return fmt.Errorf("the process lacks capabilities that it needs: %s; add %s to securityContext.capabilities.add of the container aws-node, as in deploy/aws-node.yaml",
		strings.Join(uses, ", "), strings.Join(names, ", "))
}

func effectiveCapabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var halves [2]unix.CapUserData
	if err := unix.Capget(&header, &halves[0]); err != nil {
		return 0, fmt.Errorf("read the process's capabilities: %w", err)
	}
	return uint64(halves[1].Effective)<<32 | uint64(halves[0].Effective), nil
}
