package tables

import (
	"net/netip"
	"testing"
	"time"

	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/tui/query"
)

// TestColumns_Compare: filters compare fullness in percent, and time left in the durations
// that are shown.
func TestColumns_Compare(t *testing.T) {
	t.Parallel()
	free := 2 // of 251: 99.2%
	full := &inventory.Subnet{SubnetUse: store.SubnetUse{Range: netip.MustParsePrefix("10.0.0.0/24")}, Forecast: inventory.Forecast{Left: 3 * time.Hour}}
	full.Available = &free
	unknown := &inventory.Subnet{SubnetUse: store.SubnetUse{Range: netip.MustParsePrefix("10.0.0.0/24")}}
	for text, want := range map[string]bool{
		"full>95%": true, "full>50": true, "full<5": false, "full>0.95": true, "full=99%": true, "full>=99.3%": false,
		"left<4h": true, "left<2h": false, "left>2h59m": true,
	} {
		f, err := query.Parse(text, query.Options[*inventory.Subnet]{Columns: Subnets()})
		if err != nil {
			t.Fatal(err)
		}
		if f.Match(full) != want {
			t.Errorf("%s: %v, want %v", text, !want, want)
		}
		if f.Match(unknown) {
			t.Errorf("%s is true of what is not known", text)
		}
	}
}
