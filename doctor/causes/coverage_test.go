package causes

import (
	"testing"

	"cnictl/doctor/catalogue"
)

// TestCoverage: each cause of the catalogue has one rule, a situation that shows it and one
// that only looks like it.
func TestCoverage(t *testing.T) {
	t.Parallel()
	var shown, near = map[string]bool{}, map[string]bool{}
	for _, f := range fixtures(t) {
		if code, isNear := f.of(); isNear {
			near[code] = true
		} else {
			shown[code] = true
		}
	}
	rule := map[string]int{}
	for _, r := range rules() {
		rule[r.code]++
	}
	for _, code := range catalogue.Codes() {
		if rule[code] != 1 || !shown[code] || !near[code] {
			t.Errorf("%s: %d rules, shown by a situation: %v, with a look-alike: %v", code, rule[code], shown[code], near[code])
		}
	}
}
