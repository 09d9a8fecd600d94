package limits_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/capacity/limits"
)

// refreshed is a table in which m5.large takes four interfaces, with added types before, between
// and after the built-in ones.
func refreshed() (limits.Table, []limits.Instance) {
	m5, _ := limits.Lookup("m5.large")
	m5.MaxENIs, m5.Cards = 4, []limits.Card{{Index: 0, MaxENIs: 4}}
	read := []limits.Instance{m5}
	for _, name := range []string{"zz.large", "a0.large", "m5.larger"} {
		i := m5
		i.Type = name
		read = append(read, i)
	}
	return limits.With(read), read
}

func TestTable_With(t *testing.T) {
	t.Parallel()
	table, _ := refreshed()
	m5, known := table.Lookup("m5.large")
	if !known || !table.Read("m5.large") || m5.MaxENIs != 4 || m5.TrunkingCompatible != limits.Yes || m5.BranchENIs != 9 || m5.PublishedMaxENIs != 3 {
		t.Errorf("m5.large: %+v", m5)
	}
	added, known := table.Lookup("zz.large")
	if !known || added.MaxENIs != 4 || added.TrunkingCompatible != limits.Unknown || added.BranchENIs != 0 || added.PublishedMaxENIs != 0 {
		t.Errorf("a new type: %+v", added)
	}
	built, _ := limits.Lookup("c5.large")
	if got, known := table.Lookup("c5.large"); !known || table.Read("c5.large") || cmp.Diff(built, got) != "" {
		t.Errorf("a type that was not read: %+v", got)
	}
	if i, known := (limits.Table{}).Lookup("m5.large"); !known || i.MaxENIs != 3 {
		t.Errorf("the zero table: %+v", i)
	}
	if _, known := table.Lookup("nope"); known {
		t.Error("nope is known")
	}
	want := append(slices.Collect(limits.Types()), "zz.large", "a0.large", "m5.larger")
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Collect(table.Types())); diff != "" {
		t.Errorf("types: %s", diff)
	}
	for stop := range table.Types() {
		if stop != "a0.large" {
			t.Errorf("the first type is %s", stop)
		}
		break
	}
	if got := table.Nearest("zz.larg", 1); !slices.Equal(got, []string{"zz.large"}) {
		t.Errorf("nearest: %q", got)
	}
}

// TestTable_KeepsKnownFacts: facts missing from a type that was read come from the built-in table.
func TestTable_KeepsKnownFacts(t *testing.T) {
	t.Parallel()
	built, _ := limits.Lookup("m5.large")
	read := limits.Instance{Type: "m5.large", MaxENIs: 3, IPv4PerENI: 10, IPv6PerENI: -1, Hypervisor: "nitro", Cards: built.Cards}
	got, _ := limits.With([]limits.Instance{read}).Lookup("m5.large")
	if diff := cmp.Diff(built, got); diff != "" {
		t.Error(diff)
	}
	if changed := limits.Changed([]limits.Instance{read}); len(changed) > 0 {
		t.Errorf("changed: %+v", changed)
	}
}

func TestChanged(t *testing.T) {
	t.Parallel()
	_, read := refreshed()
	same, _ := limits.Lookup("c5.large")
	var names []string
	for _, i := range limits.Changed(append(read, same, same)) {
		names = append(names, i.Type)
	}
	if diff := cmp.Diff([]string{"a0.large", "m5.large", "m5.larger", "zz.large"}, names); diff != "" {
		t.Error(diff)
	}
}

// TestInstance_Check: every built-in type passes, and each impossible fact is named.
func TestInstance_Check(t *testing.T) {
	t.Parallel()
	for name := range limits.Types() {
		i, _ := limits.Lookup(name)
		if err := i.Check(); err != nil {
			t.Error(err)
		}
	}
	for want, change := range map[string]func(*limits.Instance){
		"is not an instance type": func(i *limits.Instance) { i.Type = "m5" },
		`"\x1b[2J.large" is not`:  func(i *limits.Instance) { i.Type = "\x1b[2J.large" },
		"hypervisor":              func(i *limits.Instance) { i.Hypervisor = "kvm" },
		"arch":                    func(i *limits.Instance) { i.Arch = "mips" },
		"0 network cards":         func(i *limits.Instance) { i.Cards = nil },
		"network card 0 with 3 interfaces: want rising":  func(i *limits.Instance) { i.Cards = append(i.Cards, i.Cards[0]) },
		"network card 0 with 1001 interfaces":            func(i *limits.Instance) { i.Cards = []limits.Card{{0, 1001}} },
		"default network card 1 takes 0 interfaces":      func(i *limits.Instance) { i.DefaultCard = 1 },
		"default network card 0 takes 3 interfaces":      func(i *limits.Instance) { i.MaxENIs = 2 },
		"0 IPv4 addresses per interface: want 1 to 1024": func(i *limits.Instance) { i.IPv4PerENI = 0 },
		"1025 IPv6 addresses per interface: want -1 to":  func(i *limits.Instance) { i.IPv6PerENI = 1025 },
		"-1 vCPUs: want 0 to 65536":                      func(i *limits.Instance) { i.VCPUs = -1 },
		"-1 MiB of memory":                               func(i *limits.Instance) { i.MemoryMiB = -1 },
		"-1 branch ENIs":                                 func(i *limits.Instance) { i.BranchENIs = -1 },
	} {
		i, _ := limits.Lookup("m5.large")
		change(&i)
		if err := i.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
}
