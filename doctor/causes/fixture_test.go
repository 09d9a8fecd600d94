package causes

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
)

// fixture is a situation of testdata. GROUP/NAME.yaml shows the cause of that code,
// GROUP/NAME.near.yaml resembles it without having it. Scenarios are neither.
type fixture struct {
	name   string // path below testdata without .yaml
	expect []string
	move   Move // of a migration; the second line may be "# to: VERSION" or "# images: REFERENCES"
	ev     *evidence.Evidence
}

// options returns the options for diagnosing the situation.
func (f fixture) options() Options {
	if strings.HasPrefix(f.name, catalogue.GroupMigrate+"/") {
		return Options{Move: &f.move}
	}
	return Options{}
}

// cases returns a case per node of the situation.
func (f fixture) cases() (cs []*Case) {
	for i := range f.ev.Nodes {
		c := caseOf(f.ev, &f.ev.Nodes[i])
		c.move = f.move
		cs = append(cs, c)
	}
	return cs
}

// of returns the code that the fixture is about; empty for a scenario.
func (f fixture) of() (code string, near bool) {
	code, near = strings.CutSuffix(f.name, ".near")
	if strings.HasPrefix(code, "scenarios/") {
		return "", false
	}
	if i := strings.IndexByte(code, '@'); i >= 0 { // CODE@VARIANT
		code = code[:i]
	}
	return code, near
}

// fixtures are read once, because nothing changes them.
func fixtures(t testing.TB) []fixture {
	t.Helper()
	all, err := readFixtures()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// everyFixture is set at night; before a commit, what all situations need alike is shown by one
// for each code, and by the scenarios.
var everyFixture bool

// sampled returns the fixtures for tests that ask the same of each.
func sampled(t testing.TB) []fixture {
	t.Helper()
	all := fixtures(t)
	if everyFixture {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(f fixture) bool { return strings.ContainsAny(filepath.Base(f.name), "@.") })
}

var readFixtures = sync.OnceValues(func() ([]fixture, error) {
	paths, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no fixtures: %w", err)
	}
	var out []fixture
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f := fixture{name: strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".yaml")}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Scan()
		expect, ok := strings.CutPrefix(lines.Text(), "# expect: ")
		if !ok {
			return nil, fmt.Errorf("%s does not begin with \"# expect: CODES\"", path)
		}
		for code := range strings.SplitSeq(expect, ",") {
			if code = strings.TrimSpace(code); code != "none" {
				f.expect = append(f.expect, code)
			}
		}
		slices.Sort(f.expect)
		lines.Scan()
		if to, ok := strings.CutPrefix(lines.Text(), "# to: "); ok {
			f.move.To, _ = evidence.ParseVersion(to)
		}
		if images, ok := strings.CutPrefix(lines.Text(), "# images: "); ok {
			f.move.Images = strings.Fields(images)
		}
		if f.ev, err = situation.Load(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, f)
	}
	return out, nil
})

// reported returns a report's codes that are above info, or expected and at least probable.
func reported(r document.DoctorReport, expect []string) []string {
	var codes []string
	for _, f := range r.Findings {
		if f.Severity != catalogue.Info.String() || f.Confidence != catalogue.Suspected.String() && slices.Contains(expect, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	return codes
}

func printed(r document.DoctorReport) string {
	var b strings.Builder
	for _, list := range [][]document.Finding{r.Findings, r.Explained} {
		for _, f := range list {
			fmt.Fprintf(&b, "%s %s %s by %v: %s\n", f.Code, f.Severity, f.Confidence, f.Causes, f.Summary)
			for _, e := range f.Evidence {
				fmt.Fprintf(&b, "    %v %s %s: %s (healthy: %s)\n", e.Holds, e.Source, e.Path, e.Value, e.Expected)
			}
			for _, m := range f.Missing {
				fmt.Fprintf(&b, "    ? %s %s: %s\n", m.Source, m.WouldDecide, m.Reason)
			}
		}
	}
	return b.String()
}

// TestFixtures: each situation yields the causes that it names, at least as probable, and nothing
// else above info.
func TestFixtures(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := Diagnose(f.ev, f.options())
			if diff := cmp.Diff(f.expect, reported(r, f.expect)); diff != "" {
				t.Errorf("causes above info (-want +got):\n%s\n%s", diff, printed(r))
			}
			if code, near := f.of(); code != "" {
				if _, ok := catalogue.Lookup(code); !ok {
					t.Errorf("the file is named after %s, which the catalogue does not have", code)
				}
				if strings.HasPrefix(code, catalogue.GroupObserved+"/") { // a cause may explain it
					seen := slices.ContainsFunc(r.Observations, func(o document.Observation) bool { return o.Kind == code })
					if near == seen {
						t.Errorf("observed: %v, but is named after %s (near: %v)\n%s", seen, code, near, printed(r))
					}
				} else if near == slices.Contains(f.expect, code) {
					t.Errorf("expects %v, but is named after %s (near: %v)", f.expect, code, near)
				}
			}
		})
	}
}

// healthyWorlds are worlds without problems, for either daemon, tested in every mode.
var healthyWorlds = []string{
	"{}", "{daemon: ours}", "{ipFamily: ipv6}", "{version: v1.19.2}", "{version: v1.12.0}",
	"{enis: [{id: eni-a, ips: 9, assigned: 9}, {id: eni-b, ips: 9, assigned: 4, cooling: [4s, 9s]}]}",
	"{enis: [{id: eni-a, ips: 9, assigned: 9}, {id: eni-b, ips: 9, assigned: 9}, {id: eni-c, ips: 9, assigned: 9}]}",
	"{env: {WARM_IP_TARGET: '2', MINIMUM_IP_TARGET: '10'}, enis: [{id: eni-a, ips: 9, assigned: 8}, {id: eni-b, ips: 3, assigned: 2}]}",
	"{subnets: [{id: subnet-a, cidr: 10.0.0.0/24, available: 3}], enis: [{id: eni-a, ips: 9}, {id: eni-b, ips: 9}]}",
	"{subnets: [{id: subnet-a}, {id: subnet-b, cidr: 10.0.64.0/19, tags: {kubernetes.io/role/cni: '1'}}]}",
	"{env: {ENABLE_POD_ENI: 'true'}}",
	"{daemon: ours, env: {ENABLE_PREFIX_DELEGATION: 'true'}, enis: [{id: eni-a, prefixes: 2, assigned: 9}]}",
	"{env: {ENABLE_POD_ENI: 'true'}, enis: [{id: eni-a, ips: 9, assigned: 3}, {id: eni-t, trunk: true}]}",
	"{env: {AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: 'true'}, maxPods: 20, subnets: [{id: subnet-a}, {id: subnet-b, cidr: 10.0.64.0/19}], enis: [{id: eni-a}, {id: eni-b, subnet: subnet-b, ips: 9, assigned: 5}]}",
	"{version: v1.20.1, agentVersion: null, env: {AWS_VPC_K8S_CNI_EXTERNALSNAT: 'true', AWS_VPC_CNI_NODE_PORT_SUPPORT: 'false', POD_MTU: '1450'}, enis: [{id: eni-a, ips: 9, assigned: 9}, {id: eni-b, ips: 9, assigned: 4}]}",
	"{env: {ENABLE_POD_ENI: 'true', POD_SECURITY_GROUP_ENFORCING_MODE: strict}, maxPods: 20, enis: [{id: eni-a, ips: 9, assigned: 3}, {id: eni-t, trunk: true}], pods: [{pod: pay/api, ips: [10.0.0.99], containers: [{name: app, limits: {vpc.amazonaws.com/pod-eni: '1'}}, {name: proxy}], annotations: {vpc.amazonaws.com/pod-eni: '[{\"eniId\":\"eni-b1\",\"ifAddress\":\"02:aa:bb:cc:dd:ee\",\"privateIp\":\"10.0.0.99\",\"vlanId\":3,\"subnetCidr\":\"10.0.0.0/19\"}]'}}]}",
	"{version: v1.7.10, os: ubuntu-18.04, enis: [{id: eni-a, ips: 9, assigned: 9}, {id: eni-b, ips: 9, assigned: 4}]}",
}

// lackingWorlds are those in which TestHealthy_Missing lacks sources, at night all.
var lackingWorlds = healthyWorlds[:2]

// ofOldReleases are the obstacles to migrating from an old release that is otherwise healthy.
var ofOldReleases = []string{"migrate/probe-addr", "migrate/version-base"}

// TestHealthy: on a healthy node, nothing is found and nothing is left undecided.
func TestHealthy(t *testing.T) {
	t.Parallel()
	for _, mode := range catalogue.Modes() {
		for _, world := range healthyWorlds {
			for _, code := range healthy(t, mode, world, "{}").Undecided {
				if code != "sgp/sg-rules" { // EC2 shows no branch ENIs of a world
					t.Errorf("%s is undecided on a healthy node, mode %s, %s", code, mode, world)
				}
			}
		}
	}
}

// TestHealthy_Missing: unread sources never yield a cause.
func TestHealthy_Missing(t *testing.T) {
	t.Parallel()
	for _, mode := range catalogue.Modes() {
		for _, world := range lackingWorlds {
			for _, ids := range []string{
				"intro", "log", "kern", "host", "ec2", "k8s", "intro.enis", "metrics", "log.ipamd", "kern.link", "host.env", "imds", "ec2.subnet", "ec2.type", "k8s.ds", "k8s.node", "k8s.pod",
				"k8s.ds host.env intro.config intro.summary", "intro log metrics", "intro log metrics ec2",
			} {
				var sources []string
				for id := range strings.FieldsSeq(ids) {
					sources = append(sources, id+": {missing: forbidden}")
				}
				healthy(t, mode, world, "{"+strings.Join(sources, ", ")+"}")
			}
		}
	}
}

func healthy(t *testing.T, mode, world, sources string) document.DoctorReport {
	t.Helper()
	ev, err := situation.Load([]byte("schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nmode: " + mode + "\nworld: " + world + "\nsources: " + sources + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := Diagnose(ev, Options{})
	if len(r.Findings)+len(r.Explained) > 0 {
		t.Errorf("found in a healthy node, mode %s, %s, %s:\n%s", mode, world, sources, printed(r))
	}
	for _, code := range reported(Diagnose(ev, Options{Move: &Move{}}), nil) {
		if !strings.Contains(world, "version: ") || !slices.Contains(ofOldReleases, code) {
			t.Errorf("a healthy node could not move because of %s, mode %s, %s, %s", code, mode, world, sources)
		}
	}
	return r
}
