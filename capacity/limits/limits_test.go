package limits_test

import (
	"encoding/csv"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
)

// facts reads the CSV with the standard library, independently of the table.
func facts(t *testing.T) []map[string]string {
	t.Helper()
	f, err := os.Open("instance-limits.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, row := range rows[1:] {
		m := make(map[string]string)
		for i, name := range rows[0] {
			m[name] = row[i]
		}
		out = append(out, m)
	}
	return out
}

func number(t *testing.T, s string, empty int) int {
	t.Helper()
	if s == "" {
		return empty
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func fromCSV(t *testing.T, row map[string]string) limits.Instance {
	t.Helper()
	i := limits.Instance{
		Type:             row["instance_type"],
		MaxENIs:          number(t, row["max_enis"], 0),
		IPv4PerENI:       number(t, row["ipv4_per_eni"], 0),
		IPv6PerENI:       number(t, row["ipv6_per_eni"], -1),
		Hypervisor:       row["hypervisor"],
		BareMetal:        row["bare_metal"] == "true",
		BranchENIs:       number(t, row["branch_enis"], 0),
		DefaultCard:      number(t, row["default_network_card"], 0),
		VCPUs:            number(t, row["vcpus"], 0),
		MemoryMiB:        number(t, row["memory_mib"], 0),
		Arch:             row["arch"],
		PublishedMaxENIs: number(t, row["cni_max_enis"], 0),
	}
	i.TrunkingCompatible = map[string]limits.Tri{"true": limits.Yes, "false": limits.No}[row["trunking_compatible"]]
	for _, c := range strings.Split(row["network_cards"], "|") {
		index, enis, _ := strings.Cut(c, ":")
		i.Cards = append(i.Cards, limits.Card{Index: number(t, index, 0), MaxENIs: number(t, enis, 0)})
	}
	return i
}

func TestLookup_EveryRow(t *testing.T) {
	t.Parallel()
	rows := facts(t)
	if len(rows) != 1442 {
		t.Errorf("%d rows, the table of 2026-09 has 1442", len(rows))
	}
	var names []string
	for _, row := range rows {
		want := fromCSV(t, row)
		names = append(names, want.Type)
		got, ok := limits.Lookup(want.Type)
		if !ok {
			t.Errorf("%s: not found", want.Type)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-csv +table):\n%s", want.Type, diff)
		}
	}
	if diff := cmp.Diff(names, slices.Collect(limits.Types())); diff != "" {
		t.Errorf("types (-csv +table):\n%s", diff)
	}
}

func TestLookup_Unknown(t *testing.T) {
	t.Parallel()
	names := []string{"", " ", "a", "a1", "a1.", "a1.2xlarge ", "a1.2xlarge 4", "m5", "m5.larg", "m5.largee", "M5.LARGE",
		"zzz.large", "\n", "4", "m5.large\n", "`", "~"}
	for _, name := range names {
		if got, ok := limits.Lookup(name); ok {
			t.Errorf("Lookup(%q) = %+v", name, got)
		}
	}
}

// TestTable_Counts checks the counts stated in data/README of the facts.
func TestTable_Counts(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	for name := range limits.Types() {
		i, _ := limits.Lookup(name)
		got["trunk "+i.TrunkingCompatible.String()]++
		got["hypervisor "+i.Hypervisor]++
		if i.BareMetal {
			got["metal"]++
		}
		if len(i.Cards) > 1 {
			got["cards"]++
		}
		if i.IPv6PerENI < 0 {
			got["ipv6 unknown"]++
		}
		if i.PublishedMaxENIs == 0 {
			got["unpublished"]++
		}
	}
	want := map[string]int{"trunk yes": 1320, "trunk no": 103, "trunk unknown": 19, "hypervisor nitro": 1197,
		"hypervisor xen": 80, "hypervisor ": 165, "metal": 163, "cards": 71, "ipv6 unknown": 69, "unpublished": 51}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInstance_Derived(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		prefix bool
		total  int
		byCard []int
	}{
		{"m5.large", true, 3, []int{3}},
		{"m4.large", false, 2, []int{2}},
		{"m5.metal", true, 15, []int{15}},
		{"i3.16xlarge", false, 15, []int{15}},
		{"i7ie.48xlarge", true, 15, []int{8, 7}},
		{"p4d.24xlarge", true, 60, []int{15, 15, 15, 15}},
		{"p5en.48xlarge", true, 64, []int{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}},
	}
	for _, tt := range tests {
		i, ok := limits.Lookup(tt.name)
		if !ok {
			t.Errorf("%s: not found", tt.name)
			continue
		}
		if i.PrefixDelegation() != tt.prefix || i.TotalENIs() != tt.total {
			t.Errorf("%s: prefix delegation %v, total %d; want %v, %d", tt.name, i.PrefixDelegation(), i.TotalENIs(), tt.prefix, tt.total)
		}
		if diff := cmp.Diff(tt.byCard, i.ENIsByCard()); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		n    int
		want []string
	}{
		{"m5.large", 1, []string{"m5.large"}},
		{" M5.Large ", 1, []string{"m5.large"}},
		{"m5.lagre", 1, []string{"m5.large"}},
		{"m5large", 1, []string{"m5.large"}},
		{"c5.4xlage", 1, []string{"c5.4xlarge"}},
		{"t3.smal", 2, []string{"t3.small", "t2.small"}},
		{"this is no instance type", 3, []string{}},
		{"m5.large", 0, nil},
		{strings.Repeat("m5.large", 1000), 3, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, limits.Nearest(tt.name, tt.n)); diff != "" {
			t.Errorf("Nearest(%.20q, %d): %s", tt.name, tt.n, diff)
		}
	}
}

// TestTable_NoInit: the table must not cost a process anything at start. The runtime reports
// every package that runs code then.
func TestTable_NoInit(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
	if !strings.Contains(string(trace), "init runtime @") {
		t.Fatalf("no trace of the runtime's own start, so it proves nothing:\n%s", trace)
	}
	if strings.Contains(string(trace), "init cnictl/capacity/limits @") {
		t.Errorf("the package runs code at start:\n%s", trace)
	}
}

func FuzzLookup(f *testing.F) {
	for _, s := range []string{"m5.large", "a1.2xlarge", "z1d.xlarge", "m5.large 3", "\n", "-", ""} {
		f.Add(s)
	}
	known := map[string]bool{}
	for name := range limits.Types() {
		known[name] = true
	}
	f.Fuzz(func(t *testing.T, name string) {
		got, ok := limits.Lookup(name)
		if ok != known[name] || ok && got.Type != name {
			t.Errorf("Lookup(%q) = %q, %v; listed: %v", name, got.Type, ok, known[name])
		}
		if n := limits.Nearest(name, 2); len(n) > 2 {
			t.Errorf("Nearest gave %q", n)
		}
	})
}

func BenchmarkLookup(b *testing.B) {
	for b.Loop() {
		if _, ok := limits.Lookup("m5.4xlarge"); !ok {
			b.Fatal("not found")
		}
	}
}
