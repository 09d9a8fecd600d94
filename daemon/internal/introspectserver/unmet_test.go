package introspectserver

import (
	"fmt"
	"testing"

	"cnictl/daemon/api/introspect"
)

// TestPlan_Unmet: unmet targets are reported with the obstacle, so that no action does not
// look like success.
func TestPlan_Unmet(t *testing.T) {
	t.Parallel()
	h := newHandler(fullOptions(), "", nil)
	for query, want := range map[string]string{
		"":                       "[]", // the node's own WARM_ENI_TARGET is overridden as usual
		"?warmIp=1000&maxEni=1":  "[0 WARM_IP_TARGET 5/1000 eni-limit 0 MINIMUM_IP_TARGET 9/10 eni-limit]",
		"?warmIp=5&warmEni=2":    "[0 WARM_ENI_TARGET 0/2 overridden]",
		"?warmPrefix=2":          "[0 WARM_PREFIX_TARGET 0/2 mode]",
		"?maxPods=3&minimumIp=9": "[0 WARM_IP_TARGET 0/5 max-pods 0 MINIMUM_IP_TARGET 3/9 max-pods]",
	} {
		doc := read[introspect.NodePlan](t, ask(t, h, introspect.PathPlan+query))
		got := []string{}
		for _, u := range doc.Unmet {
			if u.Title == "" {
				t.Errorf("%+v", u)
			}
			got = append(got, fmt.Sprintf("%d %s %d/%d %s", u.Card, u.Target, u.Possible, u.Wanted, u.Reason))
		}
		if fmt.Sprint(got) != want || doc.Unmet == nil {
			t.Errorf("%s: %q, want %s", query, got, want)
		}
	}
}
