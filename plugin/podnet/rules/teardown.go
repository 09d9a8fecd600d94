package rules

import (
	"fmt"
	"net/netip"
	"strings"

	"cnictl/daemon/api/netnames"
)

// Teardown is what DEL removes on the host. Everything may be missing already. The
// veth pair is not among it: it goes with the pod's namespace, and deleting it
// would make somebody wait for the kernel's grace period.
type Teardown struct {
	ToPod   Rule
	FromPod []Rule // each deleted until none is left: old releases made one per VPC CIDR
	Route   Route  // in the main table, whatever its link
}

// NewTeardown is the removal of a pod's address. Table 0 matches rules of any table.
func NewTeardown(address netip.Addr, table int) (Teardown, error) {
	address = address.Unmap()
	if !address.Is4() {
		return Teardown{}, fmt.Errorf("lay out teardown: %q is not an IPv4 address", address)
	}
	if table < 0 {
		return Teardown{}, fmt.Errorf("lay out teardown: route table %d is negative", table)
	}
	own := netip.PrefixFrom(address, 32)
	t := Teardown{
		ToPod: Rule{Priority: netnames.RuleToPod, To: own, Table: netnames.MainTable},
		Route: Route{Dst: own},
	}
	if !netnames.IsMain(table) {
		t.FromPod = []Rule{{Priority: netnames.RuleFromPod, From: own, Table: table}}
	}
	return t, nil
}

func (t Teardown) String() string {
	var b strings.Builder
	b.WriteString("host rule del " + t.ToPod.String() + "\n")
	for _, r := range t.FromPod {
		b.WriteString("host rule del " + r.String() + "\n")
	}
	b.WriteString("host route del " + single(t.Route.Dst) + "\n")
	return b.String()
}
