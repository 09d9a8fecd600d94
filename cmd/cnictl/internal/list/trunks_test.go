package list

import (
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/tui/query"
	"cnictl/tui/tables"
)

// TestColumns_UsedInPercent: filters compare the branch ENIs in use as a percentage.
func TestColumns_UsedInPercent(t *testing.T) {
	t.Parallel()
	used, limit := 45, 54 // 83.3%
	r := document.TrunkItem{BranchUsed: &used, BranchLimit: &limit}
	for text, want := range map[string]bool{"used>80%": true, "used>83": true, "used>84%": false, "used<5": false, "used=45/54": true} {
		f, err := query.Parse(text, query.Options[document.TrunkItem]{Columns: tables.Trunks()})
		if err != nil || f.Match(r) != want {
			t.Errorf("%s: %v, want %v (%v)", text, !want, want, err)
		}
	}
}
