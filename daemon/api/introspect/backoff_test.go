package introspect

import "testing"

// TestBackoff_Object: an ID that says what it is needs no second word.
func TestBackoff_Object(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]Backoff{
		"attach": {Scope: "attach"}, "release": {Scope: "release"}, "eni-0b2c": {Scope: "eni", ID: "eni-0b2c"},
		"subnet-0aa1": {Scope: "subnet", ID: "subnet-0aa1"}, "prefixes of subnet-0aa1": {Scope: "subnet-prefix", ID: "subnet-0aa1"},
		"eni x": {Scope: "eni", ID: "x"},
	} {
		if got := b.Object(); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
}
