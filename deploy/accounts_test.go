package deploy_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/deploy/chart"
)

// TestAccounts: the table of AWS's registries has each region that the SDK knows exactly once, in
// order, with the domain of its partition. Both charts have the same table: a chart cannot read
// files of another one.
func TestAccounts(t *testing.T) {
	t.Parallel()
	var tables [2][]byte
	for i, name := range []string{"aws-vpc-cni", "cni-metrics-helper"} {
		text, err := os.ReadFile("chart/" + name + "/registry-accounts.csv")
		if err != nil {
			t.Fatal(err)
		}
		tables[i] = text
	}
	if !bytes.Equal(tables[0], tables[1]) {
		t.Error("the tables of the charts differ")
	}
	rows, err := csv.NewReader(bytes.NewReader(tables[0])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, p := range partitions(t) {
		for region := range p.Regions {
			if !strings.HasSuffix(region, "-global") {
				want[region] = p.Outputs.DNSSuffix
			}
		}
	}
	var regions []string
	for _, row := range rows[1:] {
		regions = append(regions, row[0])
		if !regexp.MustCompile(`^[0-9]{12}$`).MatchString(row[1]) || row[2] != want[row[0]] {
			t.Errorf("%q, the SDK's domain is %q", row, want[row[0]])
		}
		if got := chart.Registries()[row[0]]; got != (chart.Registry{Account: row[1], Domain: row[2]}) {
			t.Errorf("%q is read as %+v", row, got)
		}
		delete(want, row[0])
	}
	if !slices.IsSorted(regions) || len(slices.Compact(slices.Clone(regions))) != len(regions) {
		t.Errorf("not in order, or twice: %q", regions)
	}
	for region := range want {
		t.Errorf("no row for %s", region)
	}
}

type partition struct {
	Regions map[string]any
	Outputs struct{ DNSSuffix string }
}

// partitions reads the SDK's source, which exports its partitions in no package.
func partitions(t *testing.T) []partition {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "internal/endpoints/awsrulesfn/partitions.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out struct{ Partitions []partition }
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out.Partitions
}
