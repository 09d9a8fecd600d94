package live_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/fleettest"
	"cnictl/daemon/fleet/live"
	"cnictl/daemon/subnethistory"
)

// TestHistories: of many nodes the two whose counts go back furthest are asked for them, once; the view
// has the counts before those of the samples. Without the option nobody is asked.
func TestHistories(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			b := run(t, live.Options{Histories: wanted})
			asked := make(chan string, 1000)
			begin := time.Now()
			var targets []fleet.Target
			for i := range 20 {
				name := fmt.Sprintf("node-%02d", i)
				since := begin.Add(-time.Duration(20+i) * time.Hour).UTC()
				p := fleettest.ServePipe(t, func(w http.ResponseWriter, r *http.Request) {
					switch r.URL.Path {
					case introspect.PathSummary:
						at, free := time.Now().UTC(), 300
						s := introspect.Summary{APIVersion: introspect.APIVersion, Kind: introspect.KindSummary, Subnets: []introspect.Subnet{
							{ID: "subnet-a", CIDR: "10.0.0.0/20", Available: &free, AsOf: &at, HistorySince: &since},
						}}
						_ = json.NewEncoder(w).Encode(s)
					case introspect.PathSubnetHistory:
						asked <- name
						if name == "node-18" {
							w.WriteHeader(http.StatusInternalServerError)
							return
						}
						var h subnethistory.History
						h.Note(since, "subnet-a", 500)
						h.Note(begin.Add(-time.Hour), "subnet-a", 400)
						_ = json.NewEncoder(w).Encode(h.Document())
					default:
						_, _ = io.WriteString(w, commands)
					}
				})
				targets = append(targets, fleet.Target{Name: name, Address: name + ":1", Dial: p.Dial})
			}
			b.roster.put(targets...)
			elapse(10 * time.Minute)
			close(asked)
			names := slices.Sorted(func(yield func(string) bool) {
				for n := range asked {
					if !yield(n) {
						return
					}
				}
			})
			readings := b.View().Subnets[0].Readings
			if !wanted {
				if len(names) > 0 || !readings[0].At.After(begin.Add(-time.Minute)) {
					t.Errorf("asked %v, %v", names, readings)
				}
				return
			}
			if !slices.Equal(names, []string{"node-18", "node-19"}) {
				t.Errorf("asked %v", names)
			}
			if len(readings) < 3 || readings[0].Free != 500 || readings[1].Free != 400 || begin.Sub(readings[0].At).Round(time.Minute) != 39*time.Hour {
				t.Errorf("%v", readings)
			}
		})
	}
}
