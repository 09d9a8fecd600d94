package cli

import (
	"testing"

	"cnictl/daemon/api/introspect"
)

func TestParsePod(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]introspect.PodRef{"a/b": {Namespace: "a", Name: "b"}, "pod/b": {}, "pod/a/b": {Namespace: "a", Name: "b"}, "b": {}, "a/": {}, "/b": {}, "a/b/c": {}, "a/b\x1b": {}, "a /b": {}} {
		got, err := ParsePod(text)
		if got != want || (err == nil) != (want.Name != "") {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
