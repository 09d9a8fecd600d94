package root

import "testing"

// TestHabits: what kubectl's users type works: singular and plural, get, -A.
func TestHabits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for typed, plain := range map[string]string{
		"subnet": "subnets", "eni": "enis", "trunk": "trunks", "ip": "ips", "event": "events", "get nodes": "nodes", "get node": "nodes", "get pods": "pods",
		"get pod -A": "pods", "get subnet": "subnets", "ips -n shop -A": "ips", "nodes -A": "nodes",
	} {
		out, errOut, code := w.runNoun(t, call{args: typed + " @large,starved"})
		want, wantErr, wantCode := w.runNoun(t, call{args: plain + " @large,starved"})
		if out != want || errOut != wantErr || code != wantCode {
			t.Errorf("%q: exit %d\n%s%swant as %q: exit %d\n%s%s", typed, code, out, errOut, plain, wantCode, want, wantErr)
		}
	}
}
