package migrate

import (
	"os"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
)

// moved diagnoses a move of a world without obstacles, changed by sources, and returns what a
// check finds.
func moved(t *testing.T, sources, code string, move Move) (f document.Finding, passed bool) {
	t.Helper()
	return movedWorld(t, "{}", sources, code, move)
}

// movedWorld is moved, of another world.
func movedWorld(t *testing.T, world, sources, code string, move Move) (f document.Finding, passed bool) {
	t.Helper()
	ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nworld: " + world + "\nsources: " + sources + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := move.Diagnose(ev, func(c string) bool { return c == code })
	if len(r.Findings) > 0 {
		return r.Findings[0], false
	}
	return f, len(r.RuledOut) == 1
}

// checkRow is what a check finds in some sources; an empty severity means no finding.
type checkRow struct {
	sources        []string
	severity, says string
	passed         bool
}

// runRows runs a check on each row, for a move without options.
func runRows(t *testing.T, code string, rows map[string]checkRow) {
	t.Helper()
	for name, c := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, passed := moved(t, "{"+strings.Join(c.sources, ", ")+"}", code, Move{})
			if f.Severity != c.severity || !strings.Contains(f.Summary, c.says) || passed != c.passed {
				t.Errorf("%s %q, passed %v, want %s %q, passed %v", f.Severity, f.Summary, passed, c.severity, c.says, c.passed)
			}
		})
	}
}

// TestNewImages: the new images pass only where the node has them. Whatever else is not known to be
// wrong is said to be unchecked.
func TestNewImages(t *testing.T) {
	t.Parallel()
	const ours, pinned = "registry.example/aws-vpc-cni:v1", "@sha256:0a"
	for name, c := range map[string]struct {
		sources, images string
		severity, says  string // empty: no finding
		passed          bool
	}{
		"not named":         {sources: "{}", severity: "info", says: "--images does not name them"},
		"not on the node":   {sources: "{}", images: ours, severity: "info", says: "not checked whether nodes can pull the new images: the node reports none of " + ours},
		"on the node":       {sources: "{k8s.node: {images: [" + ours + "]}}", images: ours, passed: true},
		"in a bundle":       {sources: "{k8s.node: {images: ['<account-id>.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:v1']}}", images: "111122223333.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:v1", passed: true},
		"another tag":       {sources: "{k8s.node: {images: ['registry.example/aws-vpc-cni:v2']}}", images: ours, severity: "info", says: ours},
		"one of two":        {sources: "{k8s.node: {images: [" + ours + "]}}", images: ours + " registry.example/aws-vpc-cni-init:v1", severity: "info", says: "none of registry.example/aws-vpc-cni-init:v1"},
		"tag and digest":    {sources: "{k8s.node: {images: ['registry.example/aws-vpc-cni" + pinned + "']}}", images: ours + pinned, passed: true},
		"Fargate":           {sources: "{k8s.node: {labels: {eks.amazonaws.com/compute-type: fargate}}}", images: ours, passed: true},
		"node unread":       {sources: "{k8s.node: {missing: forbidden}}", images: ours},
		"not even named":    {sources: "{k8s.node: {missing: forbidden}}"},
		"pods unread":       {sources: "{k8s.ds.pods: {missing: forbidden}}", images: ours},
		"another region":    {sources: "{k8s.node: {zone: us-east-1a}}", images: "111122223333.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:v1", severity: "info", says: "from another region"},
		"another partition": {sources: "{k8s.node: {zone: cn-north-1a}}", images: "111122223333.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:v1", severity: "error", says: "another partition"},
		"ours of AWS":       {sources: "{}", images: "602401143452.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni-init:v1", severity: "error", says: "publishes no such image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, passed := moved(t, c.sources, "migrate/images", Move{Images: strings.Fields(c.images)})
			if f.Severity != c.severity || !strings.Contains(f.Summary, c.says) || passed != c.passed {
				t.Errorf("%s %q, passed %v, want %s %q, passed %v", f.Severity, f.Summary, passed, c.severity, c.says, c.passed)
			}
			logged := false
			for _, e := range f.Evidence {
				logged = logged || e.Path == "new images" && e.Holds
			}
			if c.severity != "" && !logged {
				t.Errorf("it does not say what is unchecked: %+v", f.Evidence)
			}
		})
	}
}

// TestNotInECR: AWS's accounts and domains are known, those of others are not.
func TestNotInECR(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon-k8s-cni:v1.23.1":                        "",
		"602401143452.dkr-ecr-fips.us-west-2.on.aws/amazon-k8s-cni:v1.23.1":                          "",
		"602401143452.dkr.ecr.mars-north-1.amazonaws.com/amazon-k8s-cni:v1.23.1":                     "",
		"111122223333.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:v1":                                "",
		"registry.example/602401143452.dkr.ecr.cn-north-1.amazonaws.com/amazon-k8s-cni:v1":           "",
		"public.ecr.aws/eks/aws-vpc-cni:v1":                                                          "",
		"602401143452.dkr.ecr.us-west-2.amazonaws.com/aws-vpc-cni:v1":                                "the account is AWS's, which publishes no such image",
		"877085696533.dkr.ecr.us-west-2.amazonaws.com/amazon/aws-network-policy-agent:v1.4.2":        "AWS's account in us-west-2 is 602401143452",
		"918309763551.dkr.ecr.cn-north-1.amazonaws.com/amazon-k8s-cni:v1.23.1":                       "the domain in cn-north-1 is amazonaws.com.cn",
		"111122223333.dkr.ecr.us-west-2.amazonaws.com.cn/amazon-k8s-cni@sha256:0a":                   "the domain in us-west-2 is amazonaws.com",
		"918309763551.dkr-ecr.cn-north-1.on.amazonwebservices.com.cn/amazon-k8s-cni:v1.23.1-minimal": "",
	} {
		if got := notInECR(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

// TestMonitorsLost: what a ServiceMonitor finds is not known, and is said to be unchecked.
func TestMonitorsLost(t *testing.T) {
	t.Parallel()
	const lost, kept = "{name: PodMonitor/monitoring/cni, selector: {k8s-app: aws-node}, ports: [cni-metrics]}", "{name: PodMonitor/monitoring/cni, selector: {k8s-app: aws-node}, ports: [metrics]}"
	const through, other = "{name: ServiceMonitor/monitoring/cni, selector: {k8s-app: aws-node}, ports: [http]}", "{name: ServiceMonitor/shop/web, selector: {app: web}, ports: [http]}"
	monitors := func(list ...string) []string { return []string{"k8s.monitors: [" + strings.Join(list, ", ") + "]"} }
	runRows(t, "migrate/consumers", map[string]checkRow{
		"none":                     {sources: monitors(), passed: true},
		"PodMonitor of the new":    {sources: monitors(kept), passed: true},
		"PodMonitor of another":    {sources: monitors(lost), severity: "warning", says: "reads port cni-metrics"},
		"ServiceMonitor":           {sources: monitors(through, kept), severity: "info", says: "ServiceMonitor/monitoring/cni selects Services, which are not read"},
		"ServiceMonitor elsewhere": {sources: monitors(other), passed: true},
		"both":                     {sources: monitors(lost, through), severity: "warning", says: "reads port cni-metrics"},
	})
}

// TestRolloutStalls: a node under pressure holds up the rollout like a pod that is not ready, and
// is not counted twice.
func TestRolloutStalls(t *testing.T) {
	t.Parallel()
	ds := func(ready, unavailable string) string {
		return "k8s.ds: {maxUnavailable: '" + unavailable + "', pods: {desired: 30, updated: 30, ready: " + ready + "}}"
	}
	const disk, unready = "k8s.node: {conditions: {with: [{type: DiskPressure, status: 'True'}]}}", "k8s.node: {conditions: {with: [{type: DiskPressure, status: 'True'}, {type: Ready, status: Unknown}]}}"
	runRows(t, "migrate/rollout-health", map[string]checkRow{
		"none":               {sources: []string{ds("30", "3")}, passed: true},
		"some left":          {sources: []string{ds("30", "3"), disk}, severity: "warning", says: "0 of 30 pods are not ready, 1 more on nodes under pressure; at most 3 may be unavailable"},
		"none left":          {sources: []string{ds("28", "3"), disk}, severity: "error", says: "2 of 30 pods are not ready, 1 more on nodes under pressure; at most 3 may be unavailable"},
		"node not ready":     {sources: []string{ds("28", "3"), unready}, severity: "warning", says: "2 of 30 pods are not ready; at most 3 may be unavailable"},
		"pod not ready":      {sources: []string{ds("28", "3"), disk, "k8s.ds.pods: {with: [{pod: kube-system/aws-node-1, containers: {with: [{name: aws-node, ready: false}]}}]}"}, severity: "warning", says: "2 of 30 pods are not ready; at most 3 may be unavailable"},
		"node unread":        {sources: []string{ds("30", "3"), "k8s.node: {missing: forbidden}"}},
		"Windows":            {sources: []string{ds("30", "1"), "k8s.node: {labels: {kubernetes.io/os: windows}, conditions: {with: [{type: DiskPressure, status: 'True'}]}}"}, passed: true},
		"by hand":            {sources: []string{"k8s.ds: {strategy: OnDelete, maxUnavailable: null, pods: {desired: 30, updated: 30, ready: 28}}"}, severity: "warning", says: "2 of 30 pods are not ready; pods are replaced when they are deleted"},
		"by hand, all ready": {sources: []string{"k8s.ds: {strategy: OnDelete, maxUnavailable: null, pods: {desired: 30, updated: 30, ready: 30}}"}, passed: true},
		"node unread, block": {sources: []string{ds("27", "3"), "k8s.node: {missing: forbidden}"}, severity: "error", says: "3 of 30"},
	})
}

// TestPairAfter: the daemon and the agent that run after the move are compared, as far as the new
// images are known.
func TestPairAfter(t *testing.T) {
	t.Parallel()
	const v122, ours, upstream = "{version: v1.22.4}", "{daemon: ours}", "registry.example/amazon-k8s-cni:v1.22.4"
	agent := func(tag string) string { return " registry.example/amazon/aws-network-policy-agent:" + tag }
	back := evidence.Version{1, 22, 4}
	for name, c := range map[string]struct {
		world, images string
		to            evidence.Version
		says          string // empty if they match, "?" if that is unknown
	}{
		"images not named":      {world: v122},
		"agent stays":           {world: v122, images: "registry.example/aws-vpc-cni:v1", says: "cnictl's daemon with policy agent v1.4.0"},
		"agent goes along":      {world: v122, images: "registry.example/aws-vpc-cni:v1" + agent("v1.4.2")},
		"agent too old":         {world: "{}", images: "registry.example/aws-vpc-cni:v1" + agent("v1.3.0-eksbuild.1"), says: "cnictl's daemon with policy agent v1.3.0"},
		"back, release unknown": {world: ours, images: "registry.example/amazon-k8s-cni@sha256:" + strings.Repeat("0a", 32), says: "?"},
		"back, agent stays":     {world: ours, images: upstream, to: back, says: "amazon-vpc-cni-k8s v1.22.4 with policy agent v1.4.2"},
		"back, agent too":       {world: ours, images: upstream + agent("v1.4.0"), to: back},
		"ours by its number":    {world: "{daemon: ours, version: v1.20.0}"},
		"back by the tag":       {world: ours, images: upstream + agent("v1.4.0")},
		"mirror of the daemon":  {world: v122, images: "registry.example/our-cni:v1" + agent("v1.4.2")},
		"back, mirror":          {world: ours, images: "registry.example/their-cni:v1" + agent("v1.4.0"), says: "?"},
		"agent by digest":       {world: ours, images: upstream + " registry.example/amazon/aws-network-policy-agent@sha256:" + strings.Repeat("0a", 32), to: back, says: "?"},
		"upstream to upstream":  {world: v122, images: "registry.example/amazon-k8s-cni:v1.23.1" + agent("v1.4.0"), to: evidence.Version{1, 23, 1}, says: "amazon-vpc-cni-k8s v1.23.1 with policy agent v1.4.0"},
		"no agent":              {world: "{agentVersion: null}", images: "registry.example/aws-vpc-cni:v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, passed := movedWorld(t, c.world, "{}", "migrate/image-mix", Move{To: c.to, Images: strings.Fields(c.images)})
			if found := strings.TrimSuffix(c.says, "?"); passed != (c.says == "") || !strings.Contains(f.Summary, found) || found == "" && f.Summary != "" {
				t.Errorf("%q, passed %v, want %q", f.Summary, passed, c.says)
			}
		})
	}
}

// TestMigrateSubnets_IPv6: one /80 has addresses for all pods, so the check passes however many
// addresses the subnet has.
func TestMigrateSubnets_IPv6(t *testing.T) {
	t.Parallel()
	if f, passed := movedWorld(t, "{ipFamily: ipv6, subnets: [{id: subnet-a, available: 0}]}", "{}", "migrate/subnets", Move{}); !passed {
		t.Errorf("%+v", f)
	}
}

// TestMigrateRBAC_Unread: without the DaemonSet it is unknown whether what is denied is needed.
func TestMigrateRBAC_Unread(t *testing.T) {
	t.Parallel()
	if f, passed := moved(t, "{k8s.ds: {missing: timeout}, k8s.rbac: {denied: [watch policyendpoints.networking.k8s.aws]}}", "migrate/rbac", Move{}); passed || f.Code != "" {
		t.Errorf("passed %v: %+v", passed, f)
	}
}

// TestJoined: the finding of several nodes says what is wrong with each of them, and names no node
// that has only something milder.
func TestJoined(t *testing.T) {
	t.Parallel()
	diagnosed := func(nodes, code string, move Move) document.Finding {
		ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nnodes:\n" + nodes))
		if err != nil {
			t.Fatal(err)
		}
		return move.Diagnose(ev, func(c string) bool { return c == code }).Findings[0]
	}
	f := diagnosed(`
  - {world: {node: a, daemon: ours}, sources: {host.pkg: {systemd: 252, foreignRules: true, units: {systemd-networkd: active}}}}
  - {world: {node: b, daemon: ours}, sources: {host.pkg: {systemd: 252, linkPolicy: persistent}}}
`, "migrate/host-managers", Move{To: evidence.Version{1, 19, 6}})
	if !slices.Equal(f.Nodes, []string{"a", "b"}) || len(f.Fix) != 2 || !strings.Contains(f.Summary, "systemd-networkd") || !strings.Contains(f.Summary, "MACAddressPolicy=persistent") {
		t.Errorf("%q %q, %d fixes", f.Nodes, f.Summary, len(f.Fix))
	}
	f = diagnosed(`
  - {world: {node: a}}
  - {world: {node: b}, sources: {k8s.node: {labels: {kubernetes.io/arch: s390x}}}}
`, "migrate/images", Move{Images: []string{"registry.example/aws-vpc-cni:v1"}})
	if !slices.Equal(f.Nodes, []string{"b"}) || !strings.Contains(f.Summary, "s390x") {
		t.Errorf("%q %q", f.Nodes, f.Summary)
	}
	f = diagnosed(`
  - {world: {node: a}, sources: {k8s.ds: {maxUnavailable: '3', pods: {desired: 30, updated: 30, ready: 30}}}}
  - {world: {node: b, version: v1.20.0}, sources: {k8s.node: {conditions: {with: [{type: DiskPressure, status: 'True'}]}}}}
`, "migrate/rollout-health", Move{})
	if !slices.Equal(f.Nodes, []string{"b"}) || !slices.Equal(f.Versions.Detected, []string{"v1.20.0"}) {
		t.Errorf("%q with %q", f.Nodes, f.Versions.Detected)
	}
}

// TestMigrateSubnets_Summary: every subnet short of addresses is named, always in the same order.
func TestMigrateSubnets_Summary(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		summary, subnets string
		nodes            int
	}{
		"two":        {"subnets have too few free addresses: subnet-a has 5 free, and 7 are needed to fill the warm pools of 1 node; subnet-b has 4 free, and 7 are needed to fill the warm pools of 1 node", "subnet-a, subnet-b", 2},
		"fragmented": {"subnets have too few free addresses: subnet-a has 40 free, but at most 0 whole /28 blocks, and the warm pools of 1 node need 1 block", "subnet-a", 1},
	} {
		text, err := os.ReadFile("testdata/migrate/subnets@" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		ev, err := situation.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		f := (Move{}).Diagnose(ev, nil).Findings[0]
		if f.Summary != want.summary || f.Scope.Subnet != want.subnets || len(f.Nodes) != want.nodes {
			t.Errorf("%+v %q of %q, want %+v", f.Scope, f.Summary, f.Nodes, want)
		}
	}
}

// TestMigrateIAM: only an action that the new daemon needs to start is a blocker, and the policy to
// attach is that of the address family.
func TestMigrateIAM(t *testing.T) {
	t.Parallel()
	const v4, v6 = "aws-node-ipv4.json", "aws-node-ipv6.json"
	for name, want := range map[string]struct{ severity, policy string }{
		"iam": {"error", v4}, "iam@later": {"warning", v4}, "iam@subnets": {"warning", v4}, "iam@back": {"error", v4}, "iam@type": {"error", v4},
		"iam@ipv6": {"warning", v6}, "iam@ipv6-excluded": {"warning", v6}, "iam@ipv6-cards": {"warning", v6},
	} {
		text, err := os.ReadFile("testdata/migrate/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		ev, err := situation.Load(text)
		if err != nil {
			t.Fatal(err)
		}
		if f := (Move{}).Diagnose(ev, nil).Findings[0]; f.Code != "migrate/iam" || f.Severity != want.severity || len(f.Fix) != 1 || !strings.Contains(f.Fix[0].Command, want.policy) {
			t.Errorf("%s: %s %s %q, %+v, want %v", name, f.Code, f.Severity, f.Summary, f.Fix, want)
		}
	}
}
