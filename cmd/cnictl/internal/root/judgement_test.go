package root

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/pod"
	"cnictl/cmd/cnictl/internal/status"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
	"cnictl/daemon/fleet/store"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes"
	"cnictl/doctor/evidence"
	"cnictl/testenv/situation"
	"cnictl/tui/pages"
	doctorpage "cnictl/tui/pages/doctor"
	nodepage "cnictl/tui/pages/node"
	"cnictl/tui/pages/overview"
	"cnictl/tui/pages/pagetest"
	podpage "cnictl/tui/pages/pod"
)

// judgedSituation is a node, or a pod of it, with the codes that everything must name.
type judgedSituation struct {
	text  string
	codes []string // of the node
	pod   string   // NAMESPACE/NAME
	code  string   // of the pod
}

const judgedHead = "schemaVersion: 1\nat: 2026-11-21T14:02:11Z\nbase: healthy\nonce: true\n"

// judgedSituations are those that were named differently in lists, screens and the doctor.
var judgedSituations = map[string]judgedSituation{
	"ADDs wait for a full node": {codes: []string{"obs/add-waiting", "obs/stated-limit"}, text: `
world:
  daemon: ours
  instanceType: m5.large
  enis: [{id: eni-a, ips: 9, assigned: 9}, {id: eni-b, ips: 9, assigned: 9}]
sources:
  intro.summary:
    waitingAdds: 1
    waitingSince: -40s
    cards: [{card: 0, mode: secondary-ip, eniLimit: 2, statedEniLimit: {limit: 2, ofType: 3, since: -70m, retryAt: 2026-11-21T14:52:11Z}}]
`},
	"max-pods over": {codes: []string{"cap/max-pods"}, text: `
world:
  daemon: ours
  instanceType: m5.large
  maxPods: 110
  enis: [{id: eni-a, ips: 9, assigned: 3}]
sources:
  intro.summary: {maxPods: {value: 110, source: node, verdict: over, ipCapacity: 29, totalCapacity: 29, recommended: 29}}
`},
	"an exhausted subnet": {codes: []string{"ip/subnet-exhausted"}, text: `
world:
  daemon: ours
  subnets: [{id: subnet-a, cidr: 10.0.0.0/24, available: 0}]
  enis: [{id: eni-a, ips: 9, assigned: 9}]
sources:
  intro.summary: {backoffs: [{scope: subnet, id: subnet-a, until: 2026-11-21T14:02:40Z, cause: subnet-exhausted}]}
`},
	"a subnet that has recovered": {codes: []string{"ip/alloc-backoff"}, text: `
world:
  daemon: ours
  subnets: [{id: subnet-a, cidr: 10.0.0.0/24, available: 31}]
  enis: [{id: eni-a, ips: 9, assigned: 9}]
sources:
  intro.summary:
    subnets: [{id: subnet-a, available: 31}]
    backoffs: [{scope: subnet, id: subnet-a, until: 2026-11-21T14:02:40Z, cause: subnet-exhausted}]
`},
	"EC2 throttles, and the next call is in flight": {codes: []string{"aws/throttled"}, pod: "shop/web", code: "aws/throttled", text: `
world:
  daemon: ours
  enis: [{id: eni-a, ips: 9, assigned: 9}]
  pods: [{pod: shop/web, phase: Pending, reason: ContainerCreating, createdAt: -6m, startedAt: -6m}]
sources:
  intro.summary:
    waitingAdds: 1
    waitingSince: -40s
    operations: [{kind: assign, eniId: eni-a, startedAt: -1s}]
    lastErrors: [{at: -2s, operation: assign, cause: ec2-throttled, message: 'RequestLimitExceeded: Request limit exceeded.', count: 4}]
  intro.failures: {items: [{at: -8s, pod: {namespace: shop, name: web}, cause: ec2-throttled, title: EC2 is throttling requests, detail: next attempt in 6s}]}
`},
	"a branch ENI that is about to come": {pod: "pay/api", code: "sgp/annotation-pending", text: `
world:
  daemon: ours
  env: {ENABLE_POD_ENI: 'true'}
  enis: [{id: eni-a, ips: 9, assigned: 1}, {id: eni-t, trunk: true}]
  pods: [{pod: pay/api, phase: Pending, reason: ContainerCreating, createdAt: -40s, startedAt: -40s, containers: [{name: app, limits: {vpc.amazonaws.com/pod-eni: '1'}}]}]
sources:
  intro.failures: {items: [{at: -2s, pod: {namespace: pay, name: api}, cause: branch-pending, title: not ready, detail: no annotation}]}
`},
	"a branch ENI that does not come": {codes: []string{"sgp/annotation-pending"}, pod: "pay/api", code: "sgp/annotation-pending", text: `
world:
  daemon: ours
  env: {ENABLE_POD_ENI: 'true'}
  enis: [{id: eni-a, ips: 9, assigned: 1}, {id: eni-t, trunk: true}]
  pods: [{pod: pay/api, phase: Pending, reason: ContainerCreating, createdAt: -6m, startedAt: -6m, containers: [{name: app, limits: {vpc.amazonaws.com/pod-eni: '1'}}]}]
sources:
  intro.summary: {trunk: {enabled: true, supported: true, eniId: eni-t, branchLimit: 9, branchUsed: 0, branchWaiting: 1, waitingSince: -6m}}
`},
	"a broken annotation": {pod: "pay/api", code: "sgp/annotation-malformed", text: `
world:
  daemon: ours
  env: {ENABLE_POD_ENI: 'true'}
  enis: [{id: eni-a, ips: 9, assigned: 1}, {id: eni-t, trunk: true}]
  pods:
    - {pod: pay/api, phase: Pending, reason: ContainerCreating, createdAt: -6m, startedAt: -6m, containers: [{name: app, limits: {vpc.amazonaws.com/pod-eni: '1'}}], annotations: {vpc.amazonaws.com/pod-eni: '{'}}
`},
	"a pod on a node with an exhausted subnet": {codes: []string{"ip/subnet-exhausted"}, pod: "shop/web", code: "ip/subnet-exhausted", text: `
world:
  daemon: ours
  subnets: [{id: subnet-a, cidr: 10.0.0.0/24, available: 0}]
  enis: [{id: eni-a, ips: 9, assigned: 9}]
  pods: [{pod: shop/web, phase: Pending, reason: ContainerCreating, createdAt: -6m, startedAt: -6m}]
sources:
  intro.summary:
    waitingAdds: 1
    waitingSince: -40s
    backoffs: [{scope: subnet, id: subnet-a, until: 2026-11-21T14:02:40Z, cause: subnet-exhausted}]
  intro.failures: {items: [{at: -8s, pod: {namespace: shop, name: web}, cause: subnet-exhausted, title: the subnet has no free addresses, detail: subnet-a has no free address}]}
`},
}

// TestSameJudgement: status, the STATUS column, pod, the screens and the doctor name the same codes.
func TestSameJudgement(t *testing.T) {
	t.Parallel()
	for name, tt := range judgedSituations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ev, err := situation.Load([]byte(judgedHead + strings.TrimPrefix(tt.text, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			judgeNode(t, ev, tt.codes)
			if tt.pod != "" {
				judgePod(t, ev, tt.pod, tt.code)
			}
		})
	}
}

// named returns the codes that a report names.
func named(r document.DoctorReport) map[string]bool {
	out := map[string]bool{}
	for _, f := range slices.Concat(r.Findings, r.Explained) {
		out[f.Code] = true
	}
	for _, o := range r.Observations {
		out[o.Kind] = true
	}
	return out
}

// sampleOf returns what a sweep reads of a node.
func sampleOf(ev *evidence.Evidence, n *evidence.Node) document.NodeIPAM {
	r := n.Last()
	return document.NodeIPAM{
		Metadata: document.ObjectMeta{Name: n.Name}, State: document.StateLive, Source: document.SourceSummary, SampledAt: &ev.At,
		Summary: &r.Summary.Content, Object: &document.NodeObject{MaxPods: r.Node.Content.Capacity.Pods, InstanceType: r.Node.Content.InstanceType},
	}
}

func judgeNode(t *testing.T, ev *evidence.Evidence, codes []string) {
	t.Helper()
	item := sampleOf(ev, &ev.Nodes[0])
	v := store.Of([]document.NodeIPAM{item})
	n, list := v.Nodes[0], document.NodeIPAMList{Items: []document.NodeIPAM{item}, SampledAt: ev.At}
	report := causes.Diagnose(ev, causes.Options{})
	doctor := named(report)
	for _, p := range n.Problems {
		if p.Effect != document.SeverityInfo && p.Finding != "" && !doctor[p.Finding] {
			t.Errorf("a list names %s (%s), the doctor only %v", p.Finding, p.Message, slices.Sorted(maps.Keys(doctor)))
		}
	}
	f := pagetest.NewSource(0, 1)
	f.Put(item)
	screens := map[string][]string{}
	open := func(name string, p pages.Page) {
		s := pagetest.Open(p, f, 160, 60)
		s.Wait(3)
		screens[name] = s.Frame()
	}
	open("overview", overview.New(pages.Open{}))
	open("node", nodepage.New(pages.Open{Node: item.Metadata.Name}))
	open("doctor, by what is reported", doctorpage.New(pages.Open{}))
	s := pagetest.Open(doctorpage.New(pages.Open{}), f, 160, 60)
	s.Doctor = func(pages.Examine) (document.DoctorReport, error) { return report, nil }
	s.Page = doctorpage.New(pages.Open{})
	s.Wait(3)
	screens["doctor"] = s.Frame()
	screens["status"] = status.View(v, status.Of(v, list, nil), status.Frame{})
	for i, code := range codes {
		if !doctor[code] {
			t.Errorf("the doctor does not name %s: %v", code, slices.Sorted(maps.Keys(doctor)))
		}
		if i == 0 && !strings.HasPrefix(n.Status(), code) {
			t.Errorf("STATUS is %q, want %s", n.Status(), code)
		}
		for name, lines := range screens {
			if (i == 0 || name != "overview") && !strings.Contains(strings.Join(lines, "\n"), code) {
				t.Errorf("%s does not name %s:\n%s", name, code, strings.Join(lines, "\n"))
			}
		}
	}
}

func judgePod(t *testing.T, ev *evidence.Evidence, name, code string) {
	t.Helper()
	namespace, short, _ := strings.Cut(name, "/")
	ref, r := introspect.PodRef{Namespace: namespace, Name: short}, ev.Nodes[0].Last()
	if f := causes.OfPod(ev, name); f == nil || f.Code != code {
		t.Errorf("the doctor says %+v, want %s", f, code)
	} else if !named(causes.Diagnose(ev, causes.Options{}))[code] && !strings.Contains(observed(ev), code) {
		t.Errorf("the doctor's report does not name %s", code)
	}
	var kube []watch.Pod
	for _, p := range r.Pods.Content {
		ns, short, _ := strings.Cut(string(p.Pod), "/")
		one := watch.Pod{PodRef: introspect.PodRef{Namespace: ns, Name: short}, Phase: p.Phase, Reason: p.Reason, PodENI: p.Annotations["vpc.amazonaws.com/pod-eni"], StartedAt: &p.StartedAt}
		for _, ip := range p.IPs {
			one.IPs = append(one.IPs, ip.String())
		}
		if len(p.Containers) > 0 {
			_, one.Wants = p.Containers[0].Limits["vpc.amazonaws.com/pod-eni"]
		}
		kube = append(kube, one)
	}
	at := slices.IndexFunc(kube, func(p watch.Pod) bool { return p.PodRef == ref })
	if at < 0 {
		t.Fatalf("no %s", name)
	}
	item := sampleOf(ev, &ev.Nodes[0])
	doc := pod.Report(pod.Evidence{
		Pod: ref, Node: item.Metadata.Name, Kube: &kube[at], Asked: true, Interfaces: []introspect.PodInterface{}, ENIs: []introspect.NodeENI{},
		Failures: r.Failures.Content.Items, Summary: item.Summary, At: ev.At,
	})
	if doc.Finding != code {
		t.Errorf("cnictl pod says %q (%s), want %s", doc.Finding, doc.Verdict, code)
	}
	f := pagetest.NewSource(0, 1)
	f.Wait(ev.At.Sub(f.Now()))
	f.Put(item)
	f.Documents = func(node string, _ watch.Want, _ watch.Query) watch.Detail {
		return watch.Detail{Node: node, At: ev.At, ENIs: []introspect.NodeENI{}, Pods: kube, Failures: &r.Failures.Content}
	}
	s := pagetest.Open(podpage.New(pages.Open{Node: item.Metadata.Name, Pod: name}), f, 160, 60)
	if text := strings.Join(s.Frame(), "\n"); !strings.Contains(text, " "+code+"  ") {
		t.Errorf("the pod's screen does not name %s:\n%s", code, text)
	}
	rows := inventory.JoinPods(inventory.PodSides{Pods: kube, Listed: true, Asked: true, Failures: r.Failures.Content.Items})
	for _, row := range rows {
		row.At = ev.At
		if d := row.Document(); row.PodRef == ref && d.Finding != "" && d.Finding != code {
			t.Errorf("the list says %s (%s), want %s", d.Finding, d.Reason, code)
		}
	}
}

// observed returns what the doctor's observations are about.
func observed(ev *evidence.Evidence) string {
	var all []string
	for _, o := range causes.Diagnose(ev, causes.Options{}).Observations {
		all = append(all, o.Subject+" "+o.Is)
	}
	return strings.Join(all, "\n")
}

// TestSameJudgement_Situations: in none of the doctor's situations does a list name what the doctor
// does not.
func TestSameJudgement_Situations(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("../../../../doctor/causes/testdata/*/*@*.yaml") // those of our daemon are variants
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	problems := 0
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "daemon: ours") {
			continue
		}
		ev, err := situation.Load(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var doctor map[string]bool
		for i := range ev.Nodes {
			if r := ev.Nodes[i].Last(); !r.Summary.OK() {
				continue
			}
			for _, p := range store.NewNode(sampleOf(ev, &ev.Nodes[i])).Problems {
				if p.Effect == document.SeverityInfo || p.Finding == "" {
					continue
				}
				if doctor == nil {
					doctor = named(causes.Diagnose(ev, causes.Options{}))
				}
				if problems++; !doctor[p.Finding] {
					t.Errorf("%s: a list names %s (%s), the doctor only %v", path, p.Finding, p.Message, slices.Sorted(maps.Keys(doctor)))
				}
			}
		}
	}
	if problems < 10 {
		t.Errorf("only %d problems in all situations", problems)
	}
}
