package record

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"cnictl/daemon/api/daemonlog"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/watch"
	"cnictl/daemon/scrub"
	"cnictl/doctor/evidence"
)

// documents are what was read from a node besides its samples. Nil ones were not recorded.
// Events, log lines and Kubernetes events are appended to those recorded before; the others
// replace them.
type documents struct {
	Node  string `json:"node"`
	Whole bool   `json:"whole,omitempty"` // of a key frame: nothing before it counts

	Plan       *introspect.NodePlan     `json:"plan,omitempty"`
	Failures   *introspect.NodeFailures `json:"failures,omitempty"`
	Events     *introspect.NodeEvents   `json:"events,omitempty"`
	Logs       *introspect.NodeLogs     `json:"logs,omitempty"`
	KubeEvents []watch.KubeEvent        `json:"kubeEvents,omitzero"`
	Pods       []watch.Pod              `json:"pods,omitzero"`
	Wiring     []introspect.NodePod     `json:"wiring,omitempty"` // of single pods
}

// How many of the newest are kept per node.
const (
	keptEvents     = 500
	keptLines      = 500
	keptKubeEvents = 200
	keptWiring     = 64
)

// with adds later documents.
func (d documents) with(more documents) documents {
	if more.Whole {
		more.Whole = false
		return more.bounded()
	}
	d.Node = more.Node
	d.Plan, d.Failures = cmp.Or(more.Plan, d.Plan), cmp.Or(more.Failures, d.Failures)
	if more.Pods != nil {
		d.Pods = more.Pods
	}
	if e := more.Events; e != nil {
		if before := d.Events; before != nil && before.Epoch == e.Epoch {
			joined := *e
			joined.Items = slices.Concat(before.Items, e.Items)
			e = &joined
		}
		d.Events = e
	}
	if l := more.Logs; l != nil {
		if before := d.Logs; before != nil {
			joined := *l
			joined.Lines = slices.Concat(before.Lines, l.Lines)
			l = &joined
		}
		d.Logs = l
	}
	if more.KubeEvents != nil {
		d.KubeEvents = slices.Concat(slices.DeleteFunc(slices.Clone(d.KubeEvents), func(e watch.KubeEvent) bool {
			return slices.ContainsFunc(more.KubeEvents, func(again watch.KubeEvent) bool { return again.UID == e.UID })
		}), more.KubeEvents)
	}
	d.Wiring = slices.Concat(slices.DeleteFunc(slices.Clone(d.Wiring), func(p introspect.NodePod) bool {
		return slices.ContainsFunc(more.Wiring, func(again introspect.NodePod) bool { return again.Pod == p.Pod })
	}), more.Wiring)
	return d.bounded()
}

func (d documents) bounded() documents {
	if d.Events != nil {
		e := *d.Events
		e.Items, d.Events = newest(e.Items, keptEvents), &e
	}
	if d.Logs != nil {
		l := *d.Logs
		l.Lines, d.Logs = newest(l.Lines, keptLines), &l
	}
	d.KubeEvents, d.Wiring = newest(d.KubeEvents, keptKubeEvents), newest(d.Wiring, keptWiring)
	return d
}

func newest[T any](all []T, most int) []T { return all[max(0, len(all)-most):] }

// since returns what is new compared with before; ok is false if that is nothing.
func (d documents) since(before documents) (_ documents, ok bool) {
	if reflect.DeepEqual(d.Plan, before.Plan) {
		d.Plan = nil
	}
	if reflect.DeepEqual(d.Failures, before.Failures) {
		d.Failures = nil
	}
	if reflect.DeepEqual(d.Pods, before.Pods) {
		d.Pods = nil
	}
	if e := d.Events; e != nil && before.Events != nil && before.Events.Epoch == e.Epoch {
		fresh := *e
		fresh.Items = slices.DeleteFunc(slices.Clone(e.Items), func(i introspect.Event) bool { return i.Seq <= lastSeq(before.Events) })
		if d.Events = &fresh; len(fresh.Items) == 0 {
			d.Events = nil
		}
	}
	if l := d.Logs; l != nil && before.Logs != nil {
		known := map[string]bool{}
		for _, line := range before.Logs.Lines {
			known[line] = true
		}
		fresh := *l
		fresh.Lines = slices.DeleteFunc(slices.Clone(l.Lines), func(line string) bool { return known[line] })
		if d.Logs = &fresh; len(fresh.Lines) == 0 {
			d.Logs = nil
		}
	}
	if before.KubeEvents != nil {
		d.KubeEvents = slices.DeleteFunc(slices.Clone(d.KubeEvents), func(e watch.KubeEvent) bool {
			return slices.ContainsFunc(before.KubeEvents,
				func(b watch.KubeEvent) bool { return b.UID == e.UID && b.Count == e.Count && b.At.Equal(e.At) })
		})
		if len(d.KubeEvents) == 0 {
			d.KubeEvents = nil
		}
	}
	d.Wiring = slices.DeleteFunc(slices.Clone(d.Wiring), func(p introspect.NodePod) bool {
		return slices.ContainsFunc(before.Wiring, func(b introspect.NodePod) bool { return reflect.DeepEqual(b, p) })
	})
	return d, d.Plan != nil || d.Failures != nil || d.Events != nil || d.Logs != nil || d.KubeEvents != nil || d.Pods != nil ||
		len(d.Wiring) > 0
}

func lastSeq(e *introspect.NodeEvents) uint64 {
	if len(e.Items) == 0 {
		return 0
	}
	return e.Items[len(e.Items)-1].Seq
}

// shareableDocuments returns documents without what must not be shared: it removes what looks
// like a credential, and log lines about introspection requests.
func shareableDocuments(of watch.Detail) documents {
	d := documents{Node: of.Node, Plan: of.Plan, Pods: slices.Clone(of.Pods), KubeEvents: slices.Clone(of.KubeEvents)}
	if of.Failures != nil {
		f := *of.Failures
		f.Items = slices.Clone(f.Items)
		for i := range f.Items {
			f.Items[i].Detail = scrub.Line(f.Items[i].Detail)
		}
		d.Failures = &f
	}
	if of.Events != nil {
		e := *of.Events
		e.Items = slices.Clone(e.Items)
		for i := range e.Items {
			e.Items[i].Message = scrub.Line(e.Items[i].Message)
		}
		d.Events = &e
	}
	if of.Logs != nil {
		l := *of.Logs
		l.Lines = nil
		for _, line := range of.Logs.Lines {
			if !daemonlog.Parse(line).Access() {
				l.Lines = append(l.Lines, scrub.Line(line))
			}
		}
		d.Logs = &l
	}
	for i := range d.Pods {
		d.Pods[i] = shareablePod(d.Pods[i])
	}
	for i := range d.KubeEvents {
		d.KubeEvents[i].Message = scrub.Line(d.KubeEvents[i].Message)
	}
	if of.Pod != nil {
		p := *of.Pod
		p.Interfaces = slices.Clone(p.Interfaces)
		for i := range p.Interfaces {
			p.Interfaces[i].Problem = scrub.Line(p.Interfaces[i].Problem)
		}
		d.Wiring = []introspect.NodePod{p}
	}
	return d
}

// podENI is the name of branch ENIs in containers' limits.
const podENI = "vpc.amazonaws.com/pod-eni"

// shareablePod returns a pod whose object has what the doctor reads of it and rows lack, without what users chose.
func shareablePod(p watch.Pod) watch.Pod {
	p.Reason = scrub.Line(p.Reason)
	if from := p.Object; from != nil {
		p.Object = &evidence.KubePod{
			Ready: from.Ready, CreatedAt: from.CreatedAt, Reason: from.Reason, Message: scrub.Line(from.Message), Owner: from.Owner,
		}
		if app, ok := from.Labels["k8s-app"]; ok { // CoreDNS has it
			p.Object.Labels = map[string]string{"k8s-app": app}
		}
		for _, c := range from.Containers {
			kept := evidence.Container{}
			if limit, ok := c.Limits[podENI]; ok {
				kept.Limits = map[string]string{podENI: limit}
			}
			p.Object.Containers = append(p.Object.Containers, kept)
		}
	}
	if p.Daemon != nil {
		daemon := *p.Daemon
		daemon.Message = scrub.Line(daemon.Message)
		p.Daemon = &daemon
	}
	return p
}

// WriteDocuments adds documents read from a node besides its sample, as far as they are new.
// The wiring of each pod is kept separately.
func (w *Writer) WriteDocuments(of watch.Detail, at time.Time) error {
	before := w.docs[of.Node]
	fresh, ok := shareableDocuments(of).since(before)
	if _, sampled := w.last[of.Node]; !ok || !sampled {
		return nil
	}
	w.docs[of.Node] = before.with(fresh)
	if w.names != nil {
		w.names.Learn(fresh)
	}
	return w.line(entry{At: stamp(at), Doc: &fresh})
}

// keyDocuments writes the documents of all nodes into a key frame.
func (w *Writer) keyDocuments(at time.Time) error {
	for _, name := range slices.Sorted(maps.Keys(w.docs)) {
		d := w.docs[name]
		d.Whole = true
		if err := w.line(entry{At: stamp(at), Doc: &d}); err != nil {
			return err
		}
	}
	return nil
}

// library holds the documents of all nodes at the current position.
type library struct {
	mu    sync.Mutex // guards what follows
	of    map[string]documents
	bytes map[string]int // of the lines that hold each node's documents
	total int
}

func newLibrary() *library { return &library{of: map[string]documents{}, bytes: map[string]int{}} }

// add adds an entry whose line has size bytes.
func (l *library) add(d documents, size int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	more := size
	if d.Whole {
		more -= l.bytes[d.Node]
	}
	_, known := l.of[d.Node]
	if d.Node == "" || !known && len(l.of) >= maxNodes || l.total+more > maxHeld {
		return
	}
	for _, p := range d.Pods {
		if p.Object != nil { // rows have its name and addresses, and those are checked
			p.Object.Pod, p.Object.IPs = "", nil
		}
	}
	l.total += more
	l.bytes[d.Node] += more
	l.of[d.Node] = l.of[d.Node].with(d)
}

func (l *library) remove(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total -= l.bytes[node]
	delete(l.bytes, node)
	delete(l.of, node)
}

// pods returns the matching pods of the nodes whose pods were recorded; nil if there are no such
// nodes.
func (l *library) pods(find watch.PodQuery) *watch.ClusterPods {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := &watch.ClusterPods{Pods: []watch.Pod{}, Nodes: map[string]bool{}}
	for _, node := range slices.Sorted(maps.Keys(l.of)) {
		if l.of[node].Pods == nil {
			continue
		}
		out.Nodes[node] = true
		for _, p := range l.of[node].Pods {
			if find.Matches(p) {
				p.Node = node
				out.Pods = append(out.Pods, p)
			}
		}
	}
	if len(out.Nodes) == 0 {
		return nil
	}
	return out
}

// give copies what was wanted and recorded into a detail, and returns what is missing.
func (l *library) give(d *watch.Detail, want watch.Want, q watch.Query) (missing watch.Want) {
	l.mu.Lock()
	has := l.of[d.Node]
	l.mu.Unlock()
	have := watch.Detail{Plan: has.Plan, Failures: has.Failures, Events: has.Events, Logs: has.Logs, KubeEvents: has.KubeEvents,
		Pods: has.Pods}
	if q.Plan != (introspect.PlanQuery{}) {
		have.Plan = nil // a plan for other targets was not recorded
	}
	for i := range has.Wiring {
		if has.Wiring[i].Pod == q.Pod {
			have.Pod = &has.Wiring[i]
		}
	}
	if want&watch.WantClusterPods != 0 {
		have.ClusterPods = l.pods(q.Find)
	}
	for w := range want.Each() {
		if d.Take(w, &have); !d.Has(w) {
			missing |= w
		}
	}
	return missing
}
