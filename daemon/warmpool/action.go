package warmpool

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// The String forms are for users: logs and cnictl node plan.

func (a AttachENI) String() string {
	where := ""
	if a.SubnetID != "" {
		where = " in " + a.SubnetID
	}
	what := count(a.IPs, "secondary IP")
	if a.Prefixes > 0 {
		what = count(a.Prefixes, "prefix")
	}
	return fmt.Sprintf("attach an ENI%s at card %d device %d with %s: %s", where, a.Card, a.Device, what, a.Reason)
}

func (a AssignAddresses) String() string {
	return fmt.Sprintf("assign %s to %s: %s", count(a.Count, "secondary IP"), a.ENI, a.Reason)
}

func (a AssignPrefixes) String() string {
	return fmt.Sprintf("assign %s to %s: %s", count(a.Count, "prefix"), a.ENI, a.Reason)
}

func (a UnassignAddresses) String() string {
	return fmt.Sprintf("unassign %s from %s: %s", join(a.CIDRs), a.ENI, a.Reason)
}

func (a UnassignPrefixes) String() string {
	return fmt.Sprintf("unassign %s from %s: %s", join(a.CIDRs), a.ENI, a.Reason)
}

func (a DetachENI) String() string { return fmt.Sprintf("detach %s: %s", a.ENI, a.Reason) }

func (a Wait) String() string {
	return fmt.Sprintf("wait until %s: %s", a.Until.UTC().Round(time.Second).Format(time.RFC3339), a.Reason)
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "x") {
		return fmt.Sprintf("%d %ses", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func join(cidrs []netip.Prefix) string {
	words := make([]string, len(cidrs))
	for i, c := range cidrs {
		if words[i] = c.String(); c.IsSingleIP() {
			words[i] = c.Addr().String()
		}
	}
	return strings.Join(words, " ")
}
