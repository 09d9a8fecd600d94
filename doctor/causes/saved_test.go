package causes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence/file"
)

// TestSaved: evidence that was saved yields the same report.
func TestSaved(t *testing.T) {
	t.Parallel()
	for _, f := range sampled(t) {
		saved, err := file.Save(f.ev)
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		ev, err := file.Load(saved)
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		if diff := cmp.Diff(Diagnose(f.ev, Options{}), Diagnose(ev, Options{})); diff != "" {
			t.Errorf("%s, saved and read again (-want +got):\n%s", f.name, diff)
		}
	}
}
