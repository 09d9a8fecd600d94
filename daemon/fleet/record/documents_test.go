package record

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// details is a node's answer after some minutes: a log line, an event and a failed ADD per
// minute, always from the beginning, as nodes answer.
func details(minutes int) watch.Detail {
	d := watch.Detail{
		Node: "steady", Plan: &introspect.NodePlan{MaxPods: 29, Actions: []introspect.PlannedAction{{Kind: introspect.ActionWait, Text: fmt.Sprintf("wait %d", minutes/5)}}},
		Events: &introspect.NodeEvents{Epoch: "e"}, Logs: &introspect.NodeLogs{}, Failures: &introspect.NodeFailures{}, Pods: []watch.Pod{{Phase: "Running"}},
		Pod: &introspect.NodePod{Pod: introspect.PodRef{Namespace: "shop", Name: fmt.Sprintf("p%d", minutes%3)}},
	}
	for i := range minutes {
		at := start.Add(time.Duration(i) * time.Minute)
		d.Events.Items = append(d.Events.Items, introspect.Event{Seq: uint64(i + 1), At: at, Kind: introspect.EventADDFailed, Message: "password=hunter2, " + at.Format(time.TimeOnly)})
		d.Logs.Lines = append(d.Logs.Lines,
			`{"level":"info","ts":"`+at.Format("2006-01-02T15:04:05.000Z")+`","msg":"line","session_token":"hunter2"}`,
			`{"level":"info","ts":"`+at.Format("2006-01-02T15:04:05.000Z")+`","msg":"Handling http request: GET, from: @, URI: /v1/summary"}`)
		d.KubeEvents = append(d.KubeEvents[:0], watch.KubeEvent{UID: "u", At: at, Count: i + 1, Message: "client_secret=hunter2"})
		d.Failures.Items = append(d.Failures.Items, introspect.Failure{At: at, Detail: "session_token=hunter2"})
	}
	return d
}

// documented is a 20-minute recording with documents each minute.
func documented(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	opens := start.Add(7 * time.Minute)
	w, err := NewWriter(&out, Header{StartedAt: start, OpensAt: &opens})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 21 {
		at := start.Add(time.Duration(i) * time.Minute)
		if err := errors.Join(w.WriteSample(sample("steady", 5, at), at), w.WriteDocuments(details(i), at), w.WriteDocuments(watch.Detail{Node: "never-sampled", Plan: &introspect.NodePlan{}}, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDocuments: wherever a player goes, across key frames too, it has that time's
// documents, with each event and line once.
func TestDocuments(t *testing.T) {
	t.Parallel()
	file := documented(t)
	p, clock := open(t, file)
	if got := p.OpensAt(); !got.Equal(start.Add(7 * time.Minute)) {
		t.Errorf("opens at %v", got)
	}
	if info := p.Info(); info.Samples != 21 || info.Nodes != 1 {
		t.Errorf("documents count as samples: %+v", info)
	}
	const all = watch.WantPlan | watch.WantEvents | watch.WantLogs | watch.WantFailures | watch.WantPods | watch.WantKubeEvents
	check := func(how string, minutes int) {
		t.Helper()
		d := p.Detail(t.Context(), "steady", all|watch.WantConfig, watch.Query{})
		if len(d.Errors) != 1 || d.Errors[watch.WantConfig].Message != NotIncluded {
			t.Fatalf("%s %d: %+v", how, minutes, d.Errors)
		}
		if len(d.Events.Items) != minutes || len(d.Logs.Lines) != minutes || len(d.Failures.Items) != minutes || len(d.KubeEvents) != min(minutes, 1) || d.Plan.Actions[0].Text != fmt.Sprintf("wait %d", minutes/5) {
			t.Errorf("%s %d: %d events, %d lines, %d failures, %d kubernetes events, %s", how, minutes, len(d.Events.Items), len(d.Logs.Lines), len(d.Failures.Items), len(d.KubeEvents), d.Plan.Actions[0].Text)
		}
		pod := introspect.PodRef{Namespace: "shop", Name: fmt.Sprintf("p%d", minutes%3)}
		if d := p.Detail(t.Context(), "steady", watch.WantPod, watch.Query{Pod: pod}); d.Pod == nil || d.Pod.Pod != pod {
			t.Errorf("%s %d: no wiring of %v", how, minutes, pod)
		}
	}
	for _, minutes := range []int{1, 14, 3, 20, 6, 5} {
		p.Seek(start.Add(time.Duration(minutes) * time.Minute))
		check("sought", minutes)
	}
	for range 15 {
		*clock = clock.Add(time.Minute)
		p.Advance()
	}
	check("played", 20)
	if d := p.Detail(t.Context(), "steady", watch.WantLogs|watch.WantContainerLog, watch.Query{}); len(d.Errors) != 0 {
		t.Errorf("with a log the container's is missed: %+v", d.Errors)
	}
	warm := 3
	if d := p.Detail(t.Context(), "steady", watch.WantPlan, watch.Query{Plan: introspect.PlanQuery{WarmIP: &warm}}); d.Plan != nil || d.Errors[watch.WantPlan].Message != NotIncluded {
		t.Errorf("a plan under other targets is %+v", d.Plan)
	}
	if d := p.Detail(t.Context(), "", watch.WantClusterPods, watch.Query{}); len(d.Errors) != 0 || len(d.ClusterPods.Pods) != 1 || d.ClusterPods.Pods[0].Node != "steady" || !d.ClusterPods.Nodes["steady"] {
		t.Errorf("pods of the cluster: %+v", d)
	}
	if d := p.Detail(t.Context(), "", watch.WantClusterPods, watch.Query{Find: watch.PodQuery{Name: "another"}}); len(d.ClusterPods.Pods) != 0 {
		t.Errorf("pods of another name: %+v", d.ClusterPods)
	}
	if d := p.Detail(t.Context(), "never-sampled", watch.WantPlan, watch.Query{}); d.Plan != nil {
		t.Error("a node that was never sampled has documents")
	}
	text := unzipped(t, file)
	for _, unwanted := range []string{"hunter2", "Handling http request"} {
		if strings.Contains(text, unwanted) {
			t.Errorf("the file holds %q", unwanted)
		}
	}
}

// TestDocuments_Pods: of a pod's object a recording has what the doctor reads and a row lacks, and nothing private.
func TestDocuments_Pods(t *testing.T) {
	t.Parallel()
	branch := map[string]string{podENI: "1"}
	limits := map[string]string{podENI: "1", "hunter2.example/gpu": "1"}
	private := map[string]string{"k8s-app": "kube-dns", "hunter2": "hunter2"}
	object := evidence.KubePod{
		Pod: "shop/web", Phase: "Pending", Node: new("steady"), Ready: new(false), CreatedAt: start, Reason: "ContainerCreating",
		Message: "password=hunter2", Owner: "ReplicaSet", ServiceAccount: "hunter2", Labels: private, Annotations: private, NodeSelector: private,
		IPs: []netip.Addr{netip.MustParseAddr("10.0.0.9")}, Containers: []evidence.Container{{Name: "hunter2", Limits: limits}, {Name: "hunter2"}},
	}
	daemon := evidence.DaemonPod{Pod: "kube-system/aws-node-x", Node: "steady", Phase: "Running", Reason: "CrashLoopBackOff", Message: "password=hunter2",
		Containers: []evidence.DaemonContainer{{Name: "aws-node", Restarts: new(3), RestartsLastHour: new(2)}}}
	var out bytes.Buffer
	w, err := NewWriter(&out, Header{StartedAt: start})
	err = errors.Join(err, w.WriteSample(sample("steady", 5, start), start), w.WriteDocuments(watch.Detail{Node: "steady", Pods: []watch.Pod{
		{PodRef: introspect.PodRef{Namespace: "shop", Name: "web"}, Phase: "Pending", Object: &object}, {Phase: "Running", Daemon: &daemon},
	}}, start), w.Close())
	if err != nil {
		t.Fatal(err)
	}
	if text := unzipped(t, out.Bytes()); strings.Contains(text, "hunter2") {
		t.Errorf("private: %s", text)
	}
	p, _ := open(t, out.Bytes())
	pods := p.Detail(t.Context(), "steady", watch.WantPods, watch.Query{}).Pods
	want := &evidence.KubePod{
		Ready: object.Ready, CreatedAt: start, Reason: object.Reason, Message: scrub.Line(object.Message), Owner: object.Owner,
		Labels: map[string]string{"k8s-app": "kube-dns"}, Containers: []evidence.Container{{Limits: branch}, {}},
	}
	daemon.Message = scrub.Line(daemon.Message)
	if len(pods) != 2 || !reflect.DeepEqual(pods[0].Object, want) || !reflect.DeepEqual(pods[1].Daemon, &daemon) {
		t.Errorf("%+v", pods)
	}
}

// TestDocuments_Zones: an address in a pod's object, which could hold any text, is dropped: rows have the addresses.
func TestDocuments_Zones(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	l.add(documents{Node: "a", Pods: []watch.Pod{{Object: &evidence.KubePod{Pod: "a/b", IPs: []netip.Addr{netip.MustParseAddr("fe80::1%x")}}}}}, 1)
	if o := l.of["a"].Pods[0].Object; len(o.IPs) > 0 || o.Pod != "" {
		t.Errorf("%+v", o)
	}
}

// TestDocuments_Bounded: a hostile recording's data for a node is bounded.
func TestDocuments_Bounded(t *testing.T) {
	t.Parallel()
	l := newLibrary()
	for i := range 40 {
		more := documents{Node: "a", Events: &introspect.NodeEvents{Epoch: "e", Items: make([]introspect.Event, keptEvents)}, Logs: &introspect.NodeLogs{Lines: make([]string, keptLines)}, Wiring: make([]introspect.NodePod, keptWiring)}
		for j := range more.Wiring {
			more.Wiring[j].Pod.Name = fmt.Sprint(i, j)
		}
		l.add(more, maxHeld/20)
	}
	d := l.of["a"]
	if len(d.Events.Items) != keptEvents || len(d.Logs.Lines) != keptLines || len(d.Wiring) != keptWiring || l.total > maxHeld || d.Wiring[0].Pod.Name != "19 0" {
		t.Errorf("%d events, %d lines, %d pods (%s), %d bytes", len(d.Events.Items), len(d.Logs.Lines), len(d.Wiring), d.Wiring[0].Pod.Name, l.total)
	}
	if l.remove("a"); l.total != 0 {
		t.Errorf("%d bytes of no node", l.total)
	}
}

// TestOpen_BeforeDocuments: recordings that predate documents still open.
func TestOpen_BeforeDocuments(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/before-documents.cnirec")
	if err != nil {
		t.Fatal(err)
	}
	p, _ := open(t, file)
	from, to := p.Range()
	if info := p.Info(); info.Nodes != 30 || info.Samples != 450 || info.Interrupted || !p.OpensAt().Equal(from) || to.Sub(from) != 280*time.Second {
		t.Errorf("%+v, opens at %v", info, p.OpensAt())
	}
	p.Seek(to)
	if d := p.Detail(t.Context(), p.View().Nodes[0].Metadata.Name, watch.WantLogs, watch.Query{}); d.Errors[watch.WantLogs].Message != NotIncluded || len(p.View().Nodes) != 30 {
		t.Errorf("%d nodes, %+v", len(p.View().Nodes), d.Errors)
	}
}

func unzipped(t testing.TB, file []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
