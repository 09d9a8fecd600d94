// Package corpus reads the situations that doctor/causes and doctor/migrate are tested with.
// GROUP/NAME.yaml below a package's testdata shows what the code of that name stands for,
// GROUP/NAME@VARIANT.yaml does too, and GROUP/NAME.near.yaml resembles it. Scenarios show several.
package corpus

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
)

// Situation is one file. It begins with "# expect: CODES" or "# expect: none"; a package may read
// the second line too.
type Situation struct {
	Name     string // path below testdata without .yaml
	Expect   []string
	Second   string // the second line
	Evidence *evidence.Evidence
}

// Read reads all situations of a directory.
func Read(dir string) ([]Situation, error) {
	return ReadSome(dir, func(Situation) bool { return true })
}

// ReadSome reads the situations of a directory that are wanted by their name.
func ReadSome(dir string, wants func(Situation) bool) ([]Situation, error) {
	paths, err := filepath.Glob(dir + "/*/*.yaml")
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("no situations in %s: %w", dir, err)
	}
	var out []Situation
	for _, path := range paths {
		s := Situation{Name: strings.TrimSuffix(strings.TrimPrefix(path, dir+"/"), ".yaml")}
		if !wants(s) {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Scan()
		expect, ok := strings.CutPrefix(lines.Text(), "# expect: ")
		if !ok {
			return nil, fmt.Errorf("%s does not begin with \"# expect: CODES\"", path)
		}
		for code := range strings.SplitSeq(expect, ",") {
			if code = strings.TrimSpace(code); code != "none" {
				s.Expect = append(s.Expect, code)
			}
		}
		slices.Sort(s.Expect)
		lines.Scan()
		s.Second = lines.Text()
		if s.Evidence, err = situation.Load(text); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// Of returns the code that the situation is about, empty for a scenario, and whether it merely
// resembles it.
func (s Situation) Of() (code string, near bool) {
	code, near = strings.CutSuffix(s.Name, ".near")
	if strings.HasPrefix(code, "scenarios/") {
		return "", false
	}
	code, _, _ = strings.Cut(code, "@")
	return code, near
}

// Variant reports whether the file is another one of its code.
func (s Situation) Variant() bool { return strings.ContainsAny(filepath.Base(s.Name), "@.") }

// HealthyWorlds are worlds without problems, for either daemon.
var HealthyWorlds = []string{
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

// Reported returns a report's codes that are above info, or expected and at least probable.
func Reported(r document.DoctorReport, expect []string) []string {
	var codes []string
	for _, f := range r.Findings {
		if f.Severity != catalogue.Info.String() || f.Confidence != catalogue.Suspected.String() && slices.Contains(expect, f.Code) {
			codes = append(codes, f.Code)
		}
	}
	slices.Sort(codes)
	return codes
}

// Printed formats a report for a failing test.
func Printed(r document.DoctorReport) string {
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

// FirstFixes lists the first fix, or else the check, of each finding of a situation, a line each.
func FirstFixes(s Situation, r document.DoctorReport) string {
	var b strings.Builder
	for _, found := range r.Findings {
		if found.Severity == catalogue.Info.String() && !slices.Contains(s.Expect, found.Code) {
			continue
		}
		first := found.Check.Text
		if len(found.Fix) > 0 {
			first = found.Fix[0].Text
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", s.Name, found.Code, first)
	}
	return b.String()
}

// SourceIDs returns the IDs of all sources, in the order of a reading.
func SourceIDs() (ids []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[evidence.Reading]()) {
		if id := f.Tag.Get("json"); id != "" && id != "-" {
			ids = append(ids, id)
		}
	}
	return ids
}

// sameWords are sources that report the same on a real node, but only one of them in a situation.
var sameWords = [][]string{
	{"intro.summary", "intro.config", "intro.plan", "intro.failures", "intro.events", "intro.pod", "log.ipamd", "metrics"},
	{"log.ipamd", "metrics", "k8s.evt"},
	{"k8s.evt", "log.plugin", "log.kubelet"},
}

// Dropped yields a situation's evidence without some of these sources, drawn at random by its name,
// and which ones.
func (s Situation) Dropped(ids []string) iter.Seq2[string, *evidence.Evidence] {
	return func(yield func(string, *evidence.Evidence) bool) {
		seed := fnv.New64a()
		seed.Write([]byte(s.Name))
		random := rand.New(rand.NewPCG(seed.Sum64(), 0))
		for round := range 6 {
			random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
			drop := slices.Clone(ids[:1+random.IntN(1+round)])
			for _, alike := range sameWords {
				if slices.ContainsFunc(drop, func(id string) bool { return slices.Contains(alike, id) }) {
					drop = append(drop, alike...)
				}
			}
			drop = slices.DeleteFunc(drop, func(id string) bool { return id == "probe" }) // nothing follows from a probe that was not tried
			reason := []string{evidence.MissingForbidden, evidence.MissingMode}[round%2]
			if !yield(fmt.Sprintf("%v (%s)", drop, reason), without(s.Evidence, drop, reason)) {
				return
			}
		}
	}
}

// WasRead returns whether a source was read on a node. A missing or silent source counts as read,
// and the daemon's output in its container's log counts as the daemon's log.
func WasRead(ev *evidence.Evidence) func(id string) bool {
	missing := map[string]string{}
	for i, n := range ev.Nodes {
		for id, reason := range n.Last().Missing() {
			if other, there := missing[id]; i == 0 || there {
				missing[id] = cmp.Or(other, reason)
			}
		}
	}
	return func(id string) bool {
		reason := missing[id]
		return reason == "" || reason == evidence.MissingAbsent ||
			id == "intro.enis" && reason != evidence.MissingForbidden && reason != evidence.MissingMode ||
			id == "log.ipamd" && missing["log.awsnode"] == ""
	}
}

// without returns the evidence with the given sources missing from every reading.
func without(ev *evidence.Evidence, drop []string, reason string) *evidence.Evidence {
	out := *ev
	out.Nodes = slices.Clone(ev.Nodes)
	for i := range out.Nodes {
		n := &out.Nodes[i]
		for _, at := range []**evidence.Reading{&n.First, &n.Second} {
			if *at == nil {
				continue
			}
			r := **at
			v := reflect.ValueOf(&r).Elem()
			for _, f := range reflect.VisibleFields(v.Type()) {
				if source := v.FieldByIndex(f.Index); slices.Contains(drop, f.Tag.Get("json")) && source.FieldByName("Missing").String() == "" {
					source.SetZero()
					source.FieldByName("Missing").SetString(reason)
				}
			}
			*at = &r
		}
	}
	return &out
}
