package vpcrc

import (
	"encoding/json"
	"slices"
	"testing"
)

func policyOf(t *testing.T, spec string) policy {
	t.Helper()
	var p policy
	if err := json.Unmarshal([]byte(`{"spec":`+spec+`}`), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMatchGroups(t *testing.T) {
	t.Parallel()
	pod, account := map[string]string{"app": "web", "tier": "front"}, map[string]string{"role": "db"}
	for _, row := range []struct {
		name     string
		policies []string
		want     []string
	}{
		{"none", nil, nil},
		{"pod labels", []string{`{"podSelector":{"matchLabels":{"app":"web"}},"securityGroups":{"groupIds":["sg-a"]}}`}, []string{"sg-a"}},
		{"other pod labels", []string{`{"podSelector":{"matchLabels":{"app":"api"}},"securityGroups":{"groupIds":["sg-a"]}}`}, nil},
		{"account labels", []string{`{"serviceAccountSelector":{"matchLabels":{"role":"db"}},"securityGroups":{"groupIds":["sg-a"]}}`}, []string{"sg-a"}},
		{"both match", []string{`{"podSelector":{"matchLabels":{"app":"web"}},"serviceAccountSelector":{"matchLabels":{"role":"db"}},"securityGroups":{"groupIds":["sg-a"]}}`}, []string{"sg-a"}},
		{"both are meant: only the pod matches", []string{`{"podSelector":{"matchLabels":{"app":"web"}},"serviceAccountSelector":{"matchLabels":{"role":"x"}},"securityGroups":{"groupIds":["sg-a"]}}`}, nil},
		{"both are meant: only the account matches", []string{`{"podSelector":{"matchLabels":{"app":"x"}},"serviceAccountSelector":{"matchLabels":{"role":"db"}},"securityGroups":{"groupIds":["sg-a"]}}`}, nil},
		{"no selector", []string{`{"securityGroups":{"groupIds":["sg-a"]}}`}, nil},
		{"empty pod selector", []string{`{"podSelector":{},"securityGroups":{"groupIds":["sg-a"]}}`}, []string{"sg-a"}},
		{"empty account selector", []string{`{"serviceAccountSelector":{},"securityGroups":{"groupIds":["sg-a"]}}`}, []string{"sg-a"}},
		{"no groups", []string{`{"podSelector":{}}`}, nil},
		{"expressions", []string{`{"podSelector":{"matchExpressions":[{"key":"tier","operator":"In","values":["back","front"]}]},"securityGroups":{"groupIds":["sg-a"]}}`}, []string{"sg-a"}},
		{"expression that does not hold", []string{`{"podSelector":{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]},"securityGroups":{"groupIds":["sg-a"]}}`}, nil},
		{"invalid operator", []string{`{"podSelector":{"matchExpressions":[{"key":"tier","operator":"Like","values":["f"]}]},"securityGroups":{"groupIds":["sg-a"]}}`}, nil},
		{"union, first occurrence kept", []string{
			`{"podSelector":{},"securityGroups":{"groupIds":["sg-b","sg-a"]}}`,
			`{"podSelector":{"matchLabels":{"app":"x"}},"securityGroups":{"groupIds":["sg-z"]}}`,
			`{"podSelector":{},"securityGroups":{"groupIds":["sg-c","sg-b"]}}`,
		}, []string{"sg-b", "sg-a", "sg-c"}},
	} {
		var policies []policy
		for _, p := range row.policies {
			policies = append(policies, policyOf(t, p))
		}
		if got := matchGroups(policies, pod, account); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
