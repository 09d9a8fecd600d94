package pod

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/draw"
)

// TestWiring_Unread: without the kernel's state it shows what should be there, and the main
// table has no rule of its own.
func TestWiring_Unread(t *testing.T) {
	t.Parallel()
	table := 3
	for name, tt := range map[string]struct {
		in   introspect.PodInterface
		want []string
	}{
		"not reported": {introspect.PodInterface{Problem: "upstream"}, []string{"not read: upstream"}},
		"main":         {introspect.PodInterface{HostLink: "eni1"}, []string{"expected: link eni1", ": rule 512: from all to 10.0.0.1 lookup main"}},
		"its own":      {introspect.PodInterface{HostLink: "eni1", RouteTable: &table}, []string{"expected: link eni1", ": rule 512: from all to 10.0.0.1 lookup main", ": rule 1536: from 10.0.0.1 lookup 3"}},
		"no link": {introspect.PodInterface{HostLink: "eni1", Differences: []string{"a"}, Observed: &introspect.PodKernel{}},
			[]string{"state: not as expected: 1 difference", "differs: a", "link: missing: eni1", "rules: none for the address", "routes: none to the address in main"}},
	} {
		var got []string
		tt.in.Address = netip.MustParseAddr("10.0.0.1")
		Wiring(&tt.in, func(label string, spans ...draw.Span) {
			label += ": "
			for _, s := range spans {
				label += s.Text
			}
			got = append(got, label)
		})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
