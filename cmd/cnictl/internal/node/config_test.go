package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
)

func TestSupport(t *testing.T) {
	t.Parallel()
	set := "1"
	for _, tt := range []struct {
		row  introspect.ConfigRow
		want table.Cell
	}{
		{introspect.ConfigRow{}, table.Cell{Text: "-", Class: paint.Dim}},
		{introspect.ConfigRow{Support: introspect.SupportActs, Declared: &set}, table.Cell{Text: "yes"}},
		{introspect.ConfigRow{Support: introspect.SupportPassed, Declared: &set}, table.Cell{Text: "passed", Class: paint.Dim}},
		{introspect.ConfigRow{Support: introspect.SupportRefused}, table.Cell{Text: "refused", Class: paint.Dim}},
		{introspect.ConfigRow{Support: introspect.SupportLater}, table.Cell{Text: "not yet", Class: paint.Dim}},
		{introspect.ConfigRow{Support: introspect.SupportLater, Declared: &set}, table.Cell{Text: "not yet", Class: paint.Warn}},
		{introspect.ConfigRow{Support: introspect.SupportNoOp, Declared: &set}, table.Cell{Text: "no-op", Class: paint.Warn}},
	} {
		if got := support(tt.row); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.row, got, tt.want)
		}
	}
}

// TestConfigTable_ProblemsAreThoseCounted: the summary counts the rows with a problem,
// and the table marks no other row as a problem.
func TestConfigTable_ProblemsAreThoseCounted(t *testing.T) {
	t.Parallel()
	empty := ""
	rows := configTable([]introspect.ConfigRow{
		{Name: "A", Support: introspect.SupportLater},
		{Name: "B", Support: introspect.SupportActs, Declared: &empty, Problem: "bad"},
	}).Rows
	want := [][]table.Cell{
		{{Text: "A"}, {Text: "-"}, {Text: "-"}, {}, {Text: "not yet", Class: paint.Dim}, {Class: paint.Warn}},
		{{Text: "B"}, {Text: `""`}, {Text: "-"}, {}, {Text: "yes"}, {Text: "bad", Class: paint.Warn}},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestSupport_NamesAreThoseOfConfig(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]config.Support{
		introspect.SupportActs: config.Acts, introspect.SupportNoOp: config.NoOp,
		introspect.SupportPassed: config.Passed,
	} {
		if name != string(s) {
			t.Errorf("%q is %q in the daemon", name, s)
		}
	}
}
