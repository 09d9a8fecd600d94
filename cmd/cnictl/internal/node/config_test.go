package node

import (
	"testing"

	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/config"
)

func TestProblem(t *testing.T) {
	t.Parallel()
	set := "1"
	const later, never = "not acted on by this version", "not acted on by any version now"
	for _, tt := range []struct {
		row  introspect.ConfigRow
		want table.Cell
	}{
		{introspect.ConfigRow{}, table.Cell{Class: paint.Warn}},
		{introspect.ConfigRow{Support: string(config.Acts), Problem: "bad"}, table.Cell{Text: "bad", Class: paint.Warn}},
		{introspect.ConfigRow{Support: string(config.Refused)}, table.Cell{Class: paint.Warn}},
		{introspect.ConfigRow{Support: string(config.Passed)}, table.Cell{Class: paint.Warn}},
		{introspect.ConfigRow{Support: string(config.Later)}, table.Cell{Text: later, Class: paint.Dim}},
		{introspect.ConfigRow{Support: string(config.Later), Declared: &set}, table.Cell{Text: later, Class: paint.Warn}},
		{introspect.ConfigRow{Support: string(config.Later), Declared: &set, Problem: "bad"}, table.Cell{Text: "bad; " + later, Class: paint.Warn}},
		{introspect.ConfigRow{Support: string(config.NoOp), Declared: &set}, table.Cell{Text: never, Class: paint.Warn}},
	} {
		if got := problem(tt.row); got != tt.want {
			t.Errorf("%+v: %+v, want %+v", tt.row, got, tt.want)
		}
	}
}

func TestSupport_NamesAreThoseOfConfig(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]config.Support{
		introspect.SupportActs: config.Acts, introspect.SupportLater: config.Later, introspect.SupportRefused: config.Refused,
		introspect.SupportNoOp: config.NoOp, introspect.SupportPassed: config.Passed,
	} {
		if name != string(s) {
			t.Errorf("%q is %q in the daemon", name, s)
		}
	}
}
