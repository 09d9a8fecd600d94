package kube

import (
	"slices"
	"testing"

	"cnictl/deploy"
	"cnictl/doctor/evidence"
)

// TestReviewedRights: the doctor asks about exactly what the roles of aws-node grant, and asks
// about each as it is granted.
func TestReviewedRights(t *testing.T) {
	t.Parallel()
	var want []string
	for _, role := range []string{"aws-node", "aws-node-annotate"} {
		granted, err := deploy.Granted(role)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, granted...)
	}
	slices.Sort(want)
	if got := slices.Sorted(slices.Values(evidence.ReviewedRights)); !slices.Equal(got, want) {
		t.Errorf("reviewed are\n%q\ngranted are\n%q", got, want)
	}
	for _, right := range evidence.ReviewedRights {
		if rule := ruleOf(right); rule.String() != right {
			t.Errorf("%q is asked about as %+v", right, rule)
		}
	}
}
