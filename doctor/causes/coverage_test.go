package causes

import (
	"fmt"
	"testing"
	"text/tabwriter"

	"cnictl/doctor/causes/catalogue"
	"cnictl/testenv/rules/testindex"
)

// TestCoverage: each cause of the catalogue has one rule, a situation that shows it and a near miss;
// each kind of observation has one observer and a situation that has it. Any cause provoked on a real
// node is one that our daemon can have. The test prints the table of make doctor-report.
func TestCoverage(t *testing.T) {
	t.Parallel()
	shown, near, upstream := map[string]int{}, map[string]int{}, map[string]int{}
	seen, observed, causes := map[string]int{}, 0, 0
	for _, f := range fixtures(t) {
		kinds := map[string]bool{}
		for _, o := range Diagnose(f.ev, Options{}).Observations {
			kinds[o.Kind] = true
		}
		for kind := range kinds {
			seen[kind]++
		}
		if code, isNear := f.Of(); isNear {
			near[code]++
		}
		for _, code := range f.expect {
			shown[code]++
			if !f.ev.Nodes[0].Last().Summary.OK() {
				upstream[code]++
			}
		}
	}
	rule := map[string]int{}
	for _, r := range (Options{}).rules() {
		rule[r.Code]++
	}
	for _, o := range observers {
		rule[o.kind]++
	}
	tests, provoked := testindex.New("../.."), 0
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CODE\tRULE\tSITUATIONS\tOF UPSTREAM\tLOOK-ALIKES\tPROVOKED ON OUR DAEMON")
	for _, code := range catalogue.Codes() {
		entry, _ := catalogue.Lookup(code)
		if entry.Group() == catalogue.GroupMigrate { // of another package
			continue
		}
		if entry.Group() == catalogue.GroupObserved {
			observed++
			fmt.Fprintf(table, "%s\t%d\t%d\t\t%d\t\n", code, rule[code], seen[code], near[code])
			if rule[code] != 1 || seen[code] == 0 {
				t.Errorf("%s: %d observers, observed in %d situations", code, rule[code], seen[code])
			}
			continue
		}
		causes++
		real := tests.Find("testenv/node/e2e TestDoctor_Provoked/"+code) == nil || tests.Find("testenv/node/e2e TestDoctor_ProvokedCluster/"+code) == nil
		how := "no"
		switch {
		case real:
			how = "yes"
			provoked++
		case entry.Ours != "":
			how = "cannot be: " + entry.Ours
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s\n", code, rule[code], shown[code], upstream[code], near[code], how)
		if rule[code] != 1 || shown[code] == 0 || near[code] == 0 {
			t.Errorf("%s: %d rules, shown by %d situations, with %d look-alikes", code, rule[code], shown[code], near[code])
		}
		if real && entry.Ours != "" {
			t.Errorf("%s is provoked on our daemon, and the catalogue says that it cannot be", code)
		}
	}
	fmt.Fprintf(table, "\n%d causes, %d of them provoked; %d kinds of observations\n", causes, provoked, observed)
	if provoked < 30 {
		t.Errorf("%d causes are provoked, want 30 or more", provoked)
	}
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
}
