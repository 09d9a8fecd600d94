package maxpods

import "testing"

func TestVerdict_Word(t *testing.T) {
	t.Parallel()
	for v, want := range map[Verdict]string{
		OK: "ok", Over: "over", Under: "under", NoVerdict: "unknown", UnknownType: "unknown", "another": "unknown",
	} {
		if got := v.Word(); got != want {
			t.Errorf("%q: %q, want %q", v, got, want)
		}
	}
}
