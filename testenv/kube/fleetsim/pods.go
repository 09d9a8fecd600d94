package fleetsim

import (
	"bufio"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Kinds of changes of an object.
const (
	added   = watch.Added
	changed = watch.Modified
	deleted = watch.Deleted
)

// podEntries returns the node's current workloads.
func (n *node) podEntries(namespace string) []entry {
	var out []entry
	if n.has(Fargate) || n.has(Windows) {
		return nil
	}
	n.withWorld(func(w *world) {
		for _, p := range slices.Concat(w.pods, w.branchPods.pods) {
			if namespace != "" && p.namespace != namespace {
				continue
			}
			now := *p
			out = append(out, entry{namespace: p.namespace, name: p.name, build: func() runtime.Object { return n.podObject(&now) }})
		}
	})
	return out
}

// podObject returns a workload's Pod.
func (n *node) podObject(p *workload) *corev1.Pod {
	app, _, _ := strings.Cut(p.name, "-")
	set := p.name[:strings.LastIndexByte(p.name, '-')]
	yes, ready := true, p.ready()
	o := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: p.name, GenerateName: set + "-", Namespace: p.namespace, UID: n.podUID(p), ResourceVersion: strconv.FormatUint(p.version, 10),
			CreationTimestamp: metav1.NewTime(p.created), Labels: map[string]string{"app": app, "pod-template-hash": set[len(app)+1:]},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, UID: types.UID(uid(n.sim.hash(-3, set), 0)), Controller: &yes}},
		},
		Spec: corev1.PodSpec{
			NodeName: n.name, RestartPolicy: corev1.RestartPolicyAlways,
			Containers: []corev1.Container{{Name: app, Image: "registry.example.com/" + p.namespace + "/" + app + ":1.0"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, HostIP: n.ip.String()},
	}
	status := corev1.ConditionTrue
	container := corev1.ContainerStatus{Name: app, Ready: true, Started: &ready, Image: o.Spec.Containers[0].Image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(p.created)}}}
	if !ready {
		status, o.Status.Phase = corev1.ConditionFalse, corev1.PodPending
		container.Ready, container.State = false, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	} else if p.address.IsValid() {
		o.Status.PodIP = p.address.String()
		o.Status.PodIPs = []corev1.PodIP{{IP: o.Status.PodIP}}
	}
	if p.wantsBranch {
		n.addBranch(o, p)
	}
	o.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: status}}
	o.Status.ContainerStatuses = []corev1.ContainerStatus{container}
	return o
}

func (n *node) podUID(p *workload) types.UID {
	return types.UID(uid(n.sim.hash(n.index, p.name), uint64(p.number)))
}

// published notifies watchers of a pod.
func (w *world) published(p *workload, was *corev1.Pod, kind watch.EventType) {
	s := w.node.sim
	var prev runtime.Object
	if was != nil {
		prev = was
	}
	s.hub.publish(s.kinds.pods, kind, prev, func(version uint64) runtime.Object {
		p.version = version
		return w.node.podObject(p)
	})
}

// publishEvent publishes the event that kubelet writes about a failed ADD.
func (w *world) publishEvent(p *workload, detail string) {
	s := w.node.sim
	e := &corev1.Event{
		TypeMeta:       metav1.TypeMeta{Kind: "Event", APIVersion: "v1"},
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", p.name, w.Now.UnixNano()), Namespace: p.namespace, UID: types.UID(uid(s.hash(w.node.index, p.name+strconv.Itoa(p.tries)), 9)), CreationTimestamp: metav1.NewTime(w.Now.Truncate(time.Second))},
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: p.namespace, Name: p.name, UID: w.node.podUID(p)},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreatePodSandBox",
		Message:        w.node.garble(`Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox: plugin type="aws-cni" name="aws-cni" failed (add): add cmd: failed to assign an IP address to container (` + detail + `)`),
		Source:         corev1.EventSource{Component: "kubelet", Host: w.node.name},
		FirstTimestamp: metav1.NewTime(w.Now.Truncate(time.Second)), LastTimestamp: metav1.NewTime(w.Now.Truncate(time.Second)), Count: 1,
		ReportingController: "kubelet", ReportingInstance: w.node.name,
	}
	s.keepEvent(e)
}

// maxKubeEvents limits the stored Events: a real API server keeps them for an hour.
const maxKubeEvents = 1000

func (s *Sim) keepEvent(e *corev1.Event) {
	s.hub.publish(s.kinds.events, added, nil, func(version uint64) runtime.Object {
		e.ResourceVersion = strconv.FormatUint(version, 10)
		s.eventsMu.Lock()
		defer s.eventsMu.Unlock()
		if len(s.events) >= maxKubeEvents {
			s.events = append([]*corev1.Event(nil), s.events[maxKubeEvents/4:]...)
		}
		s.events = append(s.events, e)
		return e
	})
}

// podLog serves pods/log of the aws-node pod: its daemon's log.
func (s *Sim) podLog(w http.ResponseWriter, r *http.Request, q request) error {
	n, err := s.podOf(q)
	if err != nil {
		return err
	}
	if n == nil {
		w.Header().Set("Content-Type", "text/plain")
		return nil
	}
	values := r.URL.Query()
	tail := -1
	if text := values.Get("tailLines"); text != "" {
		if tail, err = strconv.Atoi(text); err != nil || tail < 0 {
			return apierrors.NewBadRequest(fmt.Sprintf("invalid tailLines %q", text))
		}
	}
	if c := values.Get("container"); c != "" && c != "aws-node" {
		return apierrors.NewBadRequest(fmt.Sprintf("container %s is not valid for pod %s", c, q.name))
	}
	w.Header().Set("Content-Type", "text/plain")
	out := bufio.NewWriter(w)
	lines := n.logLines()
	if tail >= 0 && tail < len(lines) {
		lines = lines[len(lines)-tail:]
	}
	for _, line := range lines {
		if values.Get("timestamps") == "true" {
			fmt.Fprintf(out, "%s ", line.at.UTC().Format(time.RFC3339Nano))
		}
		fmt.Fprintln(out, line.text)
	}
	flush := http.NewResponseController(w)
	if out.Flush() != nil || values.Get("follow") != "true" || flush.Flush() != nil {
		return nil
	}
	last := time.Time{}
	if len(lines) > 0 {
		last = lines[len(lines)-1].at
	}
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-r.Context().Done():
			return nil
		case <-s.ctx.Done():
			return nil
		case <-t.C:
		}
		for _, line := range n.logLines() {
			if line.at.After(last) {
				last = line.at
				fmt.Fprintln(out, line.text)
			}
		}
		if out.Flush() != nil || flush.Flush() != nil {
			return nil
		}
	}
}

type logLine struct {
	at    time.Time
	level string
	text  string
}

// logLines returns the node's events as the daemon logs them, oldest first.
func (n *node) logLines() []logLine {
	var out []logLine
	n.withWorld(func(w *world) {
		for _, e := range w.events {
			level := "info"
			if e.Cause != "" {
				level = "warn"
			}
			text := fmt.Sprintf(`{"level":%q,"ts":%q,"caller":"ipamd","msg":%q`, level, e.At.UTC().Format("2006-01-02T15:04:05.000Z"), n.garble(e.Kind.Title()))
			if e.Pod != nil {
				text += fmt.Sprintf(`,"pod":%q,"namespace":%q`, e.Pod.Name, e.Pod.Namespace)
			}
			if e.ENIID != "" {
				text += fmt.Sprintf(`,"eni_id":%q`, e.ENIID)
			}
			if e.Address.IsValid() {
				text += fmt.Sprintf(`,"ip":%q`, e.Address)
			}
			if e.Reason != "" {
				text += fmt.Sprintf(`,"reason":%q`, e.Reason)
			}
			out = append(out, logLine{e.At, level, text + "}"})
		}
	})
	return out
}

func eventEntries(s *Sim, namespace string, _ fields.Selector) []entry {
	s.eventsMu.Lock()
	defer s.eventsMu.Unlock()
	var out []entry
	for _, e := range s.events {
		if namespace == "" || e.Namespace == namespace {
			out = append(out, entry{namespace: e.Namespace, name: e.Name, build: func() runtime.Object { return e }})
		}
	}
	sortEntries(out)
	return out
}
