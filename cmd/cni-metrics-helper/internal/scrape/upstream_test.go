package scrape

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"cnictl/cmd/cni-metrics-helper/internal/aggregate"
	"cnictl/testenv/text/golden"
)

// TestUpstream reads what upstream's ipamd served on two nodes as pods came and went. The
// figures match upstream's helper, with its increases and latency corrected.
func TestUpstream(t *testing.T) {
	t.Parallel()
	nodes := map[string]string{"node-1": "secondary", "node-2": "two-enis"}
	var c aggregate.Cluster
	var out bytes.Buffer
	for _, moment := range []string{"before", "three-pods", "one-deleted", "exhausted"} {
		readings := map[string]aggregate.Reading{}
		for node, run := range nodes {
			readings[node] = readRecorded(t, run+"."+moment)
		}
		fmt.Fprintln(&out, moment)
		for _, f := range c.Poll([]string{"node-1", "node-2"}, readings) {
			fmt.Fprintf(&out, "  %s %.6g\n", f.Published, f.Value)
		}
	}
	golden.Check(t, "figures.txt", out.Bytes())
}

func readRecorded(t *testing.T, name string) aggregate.Reading {
	t.Helper()
	f, err := os.Open("../../../../daemon/internal/metrics/testdata/recorded/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := Parse(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}
