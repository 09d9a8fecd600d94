package kube

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"cnictl/testenv"
)

// TestReach: the API server is reachable whatever it answers to a request for its version.
// Answers from anything else, and server errors, count as a loss.
func TestReach(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code    int
		version string // "" means lost
	}{
		"forbidden":    {http.StatusForbidden, unknownVersion},
		"unauthorized": {http.StatusUnauthorized, unknownVersion},
		"not served":   {http.StatusNotFound, unknownVersion},
		"answers":      {http.StatusOK, "v1.35.4"},
		"broken":       {http.StatusInternalServerError, ""},
		"starting":     {http.StatusServiceUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				w.WriteHeader(tc.code)
				fmt.Fprint(w, `{"gitVersion":"v1.35.4"}`)
			})
			c := connect(t, kubeconfig(t, s, s.URL), "x")
			rec := run(t, c)
			testenv.Eventually(t, "it is reported", rec.has(func(r *record) bool { return len(r.versions)+len(r.lost) > 0 }))
			want := []string{tc.version}
			if tc.version == "" {
				want = nil
			}
			if rec.has(func(r *record) bool { return !slices.Equal(r.versions, want) || len(r.lost) > 0 != (want == nil) })() {
				t.Errorf("versions %q and losses %v, want %q", rec.versions, rec.lost, want)
			}
		})
	}
}
