package access

import (
	"slices"
	"testing"

	"cnictl/daemon/fleet/kube"
)

// TestLacking: the rights a user needs before a screen opens, and in which namespace.
func TestLacking(t *testing.T) {
	t.Parallel()
	const ns = "kube-system"
	for name, tt := range map[string]struct {
		via    string
		denied []string
		what   string
		want   []string
	}{
		"all allowed":           {},
		"one namespace alone":   {denied: []string{"list pods", "get pods", "list events", "watch events"}},
		"no nodes":              {denied: []string{"list nodes", "list pods in namespace " + ns}, what: "list", want: []string{"list nodes"}},
		"no daemons":            {denied: []string{"list pods", "list pods in namespace " + ns}, what: "find the daemons on", want: []string{"list pods in namespace " + ns}},
		"no forwarding":         {denied: []string{"create pods/portforward in namespace " + ns}},
		"no way":                {denied: []string{"create pods/portforward in namespace " + ns, "create pods/exec in namespace " + ns}, what: "read", want: []string{"create pods/portforward in namespace " + ns}},
		"SPDY alone, as asked":  {via: "port-forward", denied: []string{"get pods/portforward in namespace " + ns}},
		"not the way asked for": {via: "proxy", denied: []string{"get pods/proxy in namespace " + ns}, what: "read", want: []string{"get pods/proxy in namespace " + ns}},
	} {
		rules := kube.Rules(ns)
		for i := range rules {
			rules[i].Allowed = !slices.Contains(tt.denied, rules[i].String())
		}
		what, missing := lacking(rules, tt.via)
		var got []string
		for _, r := range missing {
			got = append(got, r.String())
		}
		if !slices.Equal(got, tt.want) || len(got) > 0 && what != tt.what {
			t.Errorf("%s: to %s: %q", name, what, got)
		}
	}
}
