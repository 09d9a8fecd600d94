package situation

import (
	"strings"
	"testing"

	"cnictl/doctor/evidence/file"
)

// TestLoad_Refuses: an error names line, member and accepted values, before any rule runs.
func TestLoad_Refuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want string }{
		"nothing":                    {"", "the file is empty"},
		"not YAML":                   {"a: [", "not YAML"},
		"a list":                     {"- a", "line 1: want an object, not a list"},
		"no version":                 {"at: 2026-11-21T14:02:11Z", "schemaVersion: required: 1"},
		"a later version":            {"schemaVersion: 2\nnew: thing", "line 1: schemaVersion: want 1, the version of situations, not 2"},
		"no time":                    {"schemaVersion: 1", "at: required"},
		"a relative time of all":     {"schemaVersion: 1\nat: -3h", `line 2: at: want a time, such as 2026-11-21T14:02:11Z or -40s, not "-3h"`},
		"two documents":              {healthyNode + "---\na: b", "more than one document"},
		"an unknown member":          {healthyNode + "wrold: {}", `line 4: unknown member "wrold"; known: schemaVersion, at, mode`},
		"an unknown source":          {healthyNode + "sources: {intro.eni: []}", `line 4: sources: no source "intro.eni"; it has intro.enis,`},
		"an unknown word":            {healthyNode + "mode: moon", `line 4: mode: want one of node, laptop, bundle, cluster, not "moon"`},
		"a member twice":             {healthyNode + "world:\n  maxPods: 1\n  maxPods: 2", "line 6: world.maxPods: given twice"},
		"a text for a number":        {healthyNode + "world: {maxPods: many}", `line 4: world.maxPods: want an integer ≥ 0, not "many"`},
		"a number for a text":        {healthyNode + "world: {node: 5}", "line 4: world.node: want a text, not 5"},
		"below zero":                 {healthyNode + "world: {maxPods: -1}", "line 4: world.maxPods: want an integer ≥ 0, not -1"},
		"capacity below zero":        {healthyNode + "sources: {k8s.node: {capacity: {pods: -1}}}", "want an integer ≥ 0, not -1"},
		"null for a number":          {healthyNode + "world: {hostPods: null}", "line 4: world.hostPods: want an integer ≥ 0, not null"},
		"no address":                 {healthyNode + "sources: {ckpt: {allocations: [{address: 10.0.0.400}]}}", `line 4: sources.ckpt.allocations[0].address: want an IP address, not "10.0.0.400"`},
		"no duration":                {healthyNode + "interval: soon", `line 4: interval: want a duration, such as 1h30m, not "soon"`},
		"later without a reading":    {healthyNode + "once: true\nlater: {}", "later: there is no second reading: once is true"},
		"without finds nothing":      {healthyNode + "sources: {kern.rule: {without: [{priority: 7}]}}", "line 4: sources.kern.rule.without[0]: no entry matches"},
		"without finds no interface": {healthyNode + "sources: {intro.enis: {without: [{eni: eni-z}]}}", "line 4: sources.intro.enis.without[0]: no entry matches"},
		"without of two things":      {healthyNode + "sources: {imds: {enis: {without: [{eni: eni-a, cidr: 10.0.0.0/28}]}}}", "want one of {eni: ID}, {cidr: CIDR}, {address: ADDRESS}"},
		"an edit of the world":       {healthyNode + "world: {enis: {with: []}}", "line 4: world.enis: want a list, not an object"},
		"an edit of nothing":         {healthyNode + "sources: {kern.rule: {wihtout: []}}", "sources.kern.rule: want a list, or an edit of the expected one"},
		"content for a group":        {healthyNode + "sources: {kern: []}", "line 4: sources.kern: want expected, or {missing: REASON}, for a whole group"},
		"missing for no reason":      {healthyNode + "sources: {metrics: {missing: null}}", "sources.metrics.missing: want a reason"},
		"an unknown subnet":          {healthyNode + "world: {enis: [{id: eni-a, subnet: subnet-z}]}", "interface eni-a is in subnet subnet-z, which is not in the world"},
		"too many assigned":          {healthyNode + "world: {enis: [{id: eni-a, ips: 9, assigned: 9, cooling: [1s]}]}", "interface eni-a has fewer addresses than are assigned and cooling"},
		"too many gone":              {healthyNode + "world: {enis: [{id: eni-a, ips: 9, assigned: 1, gone: 2}]}", "interface eni-a has more gone addresses than assigned ones"},
		"more than the subnet":       {healthyNode + "world: {subnets: [{id: subnet-a, cidr: 10.0.0.0/28}], enis: [{id: eni-a, ips: 14}]}", "the interfaces in subnet subnet-a have more addresses than 10.0.0.0/28"},
		"more blocks than the subnet": {healthyNode + "world: {subnets: [{id: subnet-a, cidr: 10.0.0.0/27}], enis: [{id: eni-a, prefixes: 3}]}",
			"the interfaces in subnet subnet-a have more prefixes than 10.0.0.0/27"},
		"an interface twice":      {healthyNode + "world: {enis: [{id: eni-a}, {id: eni-a}]}", "interface eni-a is given twice"},
		"a place twice":           {healthyNode + "world: {enis: [{id: eni-a}, {id: eni-b, device: 0}]}", "interface eni-b has card and device of another"},
		"a pod on nothing":        {healthyNode + "world: {pods: [{pod: a/b, eni: eni-z}]}", "pod a/b is on interface eni-z, which is not in the world"},
		"no version of the world": {healthyNode + "world: {version: newest}", `want a version, such as v1.23.1, not "newest"`},
		"too large":               {strings.Repeat(" ", file.MaxBytes+1), "8388608 are accepted"},
		"anchors that multiply": {healthyNode + "report:\n  - &a " + strings.Repeat("x", 1000) + "\n" +
			"nodes: [" + strings.Repeat("*a,", 9000) + "]\n", "anchors make the file larger than 8388608 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := Load([]byte(row.text))
			if err == nil || ev != nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("%v, %v; want an error with %q", ev, err, row.want)
			}
		})
	}
}
