package causes

import (
	"strings"
	"testing"

	"cnictl/doctor/causes/catalogue"
)

// TestObservedAlone: a kind of observation that is asked for by itself, without the causes that explain
// it, has a fix that fits.
func TestObservedAlone(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		alone := Diagnose(f.ev, Options{Wants: func(code string) bool { return strings.HasPrefix(code, catalogue.GroupObserved+"/") }})
		for _, found := range alone.Findings {
			if len(found.Fix) == 0 {
				t.Errorf("%s: %s has no fix", f.name, found.Code)
			}
		}
	}
}
