package access

import "testing"

func TestWholeName(t *testing.T) {
	t.Parallel()
	known := []string{"ip-10-0-3-1.eu", "ip-10-0-3-17.eu", "ip-10-0-3-17.us", "a", "a.b"}
	for name, want := range map[string]string{
		"ip-10-0-3-1": "ip-10-0-3-1.eu", "ip-10-0-3-17": "ip-10-0-3-17", "ip-10-0-3": "ip-10-0-3", "a": "a", "ip-10-0-3-17.us": "ip-10-0-3-17.us", "": "", "nope": "nope",
	} {
		if got := WholeName(name, known); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
