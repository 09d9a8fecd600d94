package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/hostnet/rules"
	"cnictl/daemon/netstate"
)

// An ENI that the node's own network configuration manages is kept, with what the daemon
// added to it, and reported. Our other ENIs are cleaned up.
func TestLeftovers_ManagedByOthers(t *testing.T) {
	t.Parallel()
	kernel := func() rules.Kernel {
		return rules.Kernel{
			State: netstate.State{Links: slices.Clone(links), Rules: slices.Clone(ourRules), Routes: slices.Concat(othersRoutes, ourRoutes),
				Addresses: append(slices.Clone(ourAddresses), address("ens7", "fd00:10::15/64"), netstate.Address{Link: index("ens5"), Prefix: pfx("10.1.0.10/20"), Expires: true})},
		}
	}
	ens7 := netstate.Rule{Priority: 32765, From: pfx("10.1.0.51/32"), Table: 10102}
	for _, row := range []struct {
		name   string
		change func(*rules.Kernel)
		rules  []netstate.Rule // on ens7
		kept   []string        // links, with a reason
	}{
		{"unowned", func(k *rules.Kernel) { k.Rules = append(k.Rules, ens7) }, []netstate.Rule{ens7}, nil},
		{"a lease", func(k *rules.Kernel) { k.Rules = append(k.Rules, ens7); k.Addresses[1].Expires = true }, nil,
			[]string{"link ens7, with its addresses, rules of priority 32765 and routes: its address 10.1.0.51/20 expires"}},
		{"a lease of the other family", func(k *rules.Kernel) { k.Rules = append(k.Rules, ens7); k.Addresses[3].Expires = true }, nil,
			[]string{"link ens7, with its addresses, rules of priority 32765 and routes: its address fd00:10::15/64 expires"}},
		{"a signed rule", func(k *rules.Kernel) { k.Rules = append(k.Rules, ens7); k.Signed = []netstate.Rule{ens7} }, nil,
			[]string{"link ens7, with its addresses, rules of priority 32765 and routes: another program made the rule for 10.1.0.51"}},
		{"a signed rule of no address", func(k *rules.Kernel) {
			other := ens7
			other.From = pfx("10.1.0.52/32")
			k.Rules, k.Signed = append(k.Rules, other), []netstate.Rule{other}
		}, nil, nil},
		{"a pod's signed rule", func(k *rules.Kernel) { k.Signed = ourRules[:15] }, nil, nil},
	} {
		k := kernel()
		row.change(&k)
		got := rules.Leftovers(k)
		want := rules.Remnants{Rules: append(slices.Clone(ourRules), row.rules...), Routes: ourRoutes, Addresses: ourAddresses}
		if row.kept != nil {
			ens6 := func(link int32) bool { return link == index("ens6") }
			want.Routes = slices.DeleteFunc(slices.Clone(ourRoutes), func(r netstate.Route) bool { return !ens6(r.Link) })
			want.Addresses = slices.DeleteFunc(slices.Clone(ourAddresses), func(a netstate.Address) bool { return !ens6(a.Link) })
		}
		byText := cmpopts.SortSlices(func(a, b netstate.Address) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
		if d := cmp.Diff(want, got, equal, byText, cmpopts.IgnoreFields(rules.Remnants{}, "Kept", "Restore")); d != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, d)
		}
		if !slices.EqualFunc(row.kept, got.Kept, func(want, got string) bool { return strings.HasPrefix(got, want) }) {
			t.Errorf("%s: kept %q, want %q", row.name, got.Kept, row.kept)
		}
	}
}
