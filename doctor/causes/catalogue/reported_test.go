package catalogue

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// noFault are codes of daemons that report no fault of the node.
var noFault = []string{"daemon-terminating"}

// TestReported: whatever a daemon reports appears under one code of the doctor, and that entry is not
// about something else.
func TestReported(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../daemon/api/cause/testdata/codes.txt")
	if err != nil {
		t.Fatal(err)
	}
	codes := strings.Fields(string(text))
	for _, code := range codes {
		e, ok := Reported(code)
		if ok == slices.Contains(noFault, code) {
			t.Errorf("%s is under an entry: %v", code, ok)
		}
		if ok && (Named(code) != e.Code || e.Group() == GroupMigrate) {
			t.Errorf("%s is %s, named %s", code, e.Code, Named(code))
		}
	}
	// The entry is found in one way: by its own list, or by the table where that does not tell.
	listed := map[string][]string{}
	for e := range All() {
		for _, code := range e.Daemon {
			listed[string(code)] = append(listed[string(code)], e.Code)
		}
	}
	for code, entries := range listed {
		if of := reported[code]; (of == "") != (len(entries) == 1) {
			t.Errorf("%s is listed by %v, and the table has %q", code, entries, of)
		}
	}
	for code, of := range reported {
		e, ok := Lookup(of)
		if !ok {
			t.Errorf("%s: there is no %s", code, of)
			continue
		}
		if entries := listed[code]; len(entries) > 0 && e.Group() != GroupObserved && !slices.Contains(entries, of) {
			t.Errorf("%s is %s, but listed by %v", code, of, entries)
		}
	}
	if _, ok := Reported("no-such-code"); ok || Named("no-such-code") != "no-such-code" {
		t.Error("an unknown code has an entry")
	}
}
