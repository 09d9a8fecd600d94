package root

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"cnictl/daemon/fleet/fleettest"
	"cnictl/testenv/text/golden"
	"cnictl/testenv/text/tour"
)

// TestGolden_Subnets: the subnets and trunks of a recording and of live nodes.
func TestGolden_Subnets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.targets["hostile"] = fleettest.ServeHandler(t, t.TempDir(), "hostile", hostileFleet())
	recording := filepath.ToSlash(tour.Path(t, tour.File))
	const all = "@large,starved,prefixes,original,down,garbage"
	tests := map[string]call{
		"subnets":             {args: "subnets {recording}"},
		"subnets-wide":        {args: "subnets {recording} -o wide --sort-by free"},
		"subnets-csv":         {args: "subnets {recording} -o csv --filter free28>0"},
		"subnets-name":        {args: "subnets {recording} -o name"},
		"subnets-json":        {args: "subnets {recording} -o json"},
		"subnets-map":         {args: "subnets subnet-0cc33dd44ee55ff66 {recording}"},
		"subnets-map-tty-60":  {args: "subnets subnet-0cc33dd44ee55ff66 {recording}", env: size("60")},
		"subnets-map-json":    {args: "subnets subnet-0aa11bb22cc33dd44 {recording} -o json"},
		"subnets-nodes":       {args: "subnets " + all},
		"subnets-not-found":   {args: "subnets subnet-1 @large"},
		"subnets-unreachable": {args: "subnets subnet-1 @down"},
		"subnets-hostile":     {args: "subnets @hostile -o wide"},
		"trunks":              {args: "trunks {recording}"},
		"trunks-wide":         {args: "trunks {recording} -o wide"},
		"trunks-json":         {args: "trunks {recording} -o json"},
		"trunks-nodes":        {args: "trunks " + all},
		"trunks-hostile":      {args: "trunks @hostile -o wide"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.args = strings.ReplaceAll(c.args, "{recording}", "--replay "+recording)
			stdout, stderr, code := w.runNoun(t, c)
			got := fmt.Sprintf("exit %d\n--- stdout\n%s--- stderr\n%s", code, stdout, stderr)
			checkNoControls(t, got, false)
			if strings.Contains(c.args, "-o json") && !json.Valid([]byte(stdout)) {
				t.Error("not JSON")
			}
			golden.Check(t, "output.txt", []byte(placeless(got)))
		})
	}
}
