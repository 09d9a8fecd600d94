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
		"subnets-map-free":    {args: "subnets map subnet-0aa11bb22cc33dd44 --free-blocks 12 {recording}"},
		"subnets-map-free-1":  {args: "subnets subnet-0cc33dd44ee55ff66 --free-blocks 1 {recording}", env: size("60")},
		"subnets-map-freed":   {args: "subnets subnet-0aa11bb22cc33dd44 --free-blocks 12 {recording} -o json"},
		"subnets-map-toomany": {args: "subnets subnet-0aa11bb22cc33dd44 --free-blocks 99 {recording}"},
		"subnets-map-now":     {args: "subnets subnet-0aa11bb22cc33dd44 --aws {recording}"},
		"subnets-map-of-two":  {args: "subnets subnet-0aa11bb22cc33dd44 subnet-0cc33dd44ee55ff66 --free-blocks 1 {recording}"},
		"subnets-nodes":       {args: "subnets " + all},
		"subnets-not-found":   {args: "subnets subnet-1 @large"},
		"subnets-unreachable": {args: "subnets subnet-1 @down"},
		"subnets-hostile":     {args: "subnets @hostile -o wide"},
		"ips-by-namespace":    {args: "ips --by namespace {recording} --allow-partial"},
		"ips-by-of-one":       {args: "ips --by node -n shop --sort-by -warm --filter warm>3 {recording} --allow-partial"},
		"ips-by-subnet-csv":   {args: "ips --by subnet {recording} --allow-partial -o csv"},
		"ips-by-json":         {args: "ips --by namespace {recording} --allow-partial -o json"},
		"ips-by-group":        {args: "ips --by group --columns group,assigned,warm @large,starved,original"},
		"ips-by-what":         {args: "ips --by color @large"},
		"ips-by-column":       {args: "ips --by node --sort-by eni @large"},
		"ips-by-owner":        {args: "ips --by owner {recording}"},
		"ips-by-one":          {args: "ips --by node --ip 10.0.0.1 @large"},
		"status-short":        {args: "status {recording} --allow-partial", env: size("132x24")},
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
