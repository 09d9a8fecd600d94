package collect

import (
	"testing"
	"time"

	"cnictl/doctor/catalogue"
	"cnictl/doctor/causes"
	"cnictl/testenv/fleetsim"
)

// TestCollect_Healthy: a cluster in which nothing is wrong has no finding above info, whatever runs on
// its nodes.
func TestCollect_Healthy(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]fleetsim.Options{
		"both daemons": {Nodes: 150, Seed: 7, Original: 0.3},
		"IPv6":         {Nodes: 10, Seed: 3, IPv6: true, Original: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev := collectAll(t, Options{Cluster: connect(t, fleetsim.New(t, o)), Interval: time.Second})
			for _, f := range causes.Diagnose(ev, causes.Options{}).Findings {
				if f.Severity != catalogue.Info.String() {
					t.Errorf("%s on %v: %s\n%+v", f.Code, f.Nodes, f.Summary, f.Evidence)
				}
			}
		})
	}
}
