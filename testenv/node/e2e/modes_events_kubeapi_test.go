package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
)

var eventObjects = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

// TestEvents: a failure on a node causes an event on the affected pod, and on the Node and the
// daemon's own pod if it must be fixed there; only a few events, however often it fails.
func TestEvents(t *testing.T) {
	t.Parallel()
	rowsAtOnce(t, map[string]func(*testing.T){
		"the node is full":           eventsOfFullNode,
		"the subnet is full":         eventsOfFullSubnet,
		"a permission is missing":    eventsOfMissingPermission,
		"EC2 refuses the start":      eventsOfRefusedStart,
		"the ENIConfig is missing":   eventsOfMissingENIConfig,
		"many pods fail at the time": eventsOfManyPods,
	}, func(t *testing.T, row func(*testing.T)) { row(t) })
}

// eventsOf lists the events about an object.
func (c *cluster) eventsOf(kind, namespace, name string) (out []eventsv1.Event) {
	c.t.Helper()
	in := namespace
	if in == "" {
		in = metav1.NamespaceDefault
	}
	list, err := c.objects(eventObjects).Namespace(in).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, item := range list.Items {
		var e eventsv1.Event
		text, err := item.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, &e)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if e.Regarding.Kind == kind && (name == "" || e.Regarding.Name == name) && e.ReportingController == "aws-node" {
			out = append(out, e)
		}
	}
	return out
}

// event waits for an event with a given reason about an object.
func (c *cluster) event(kind, namespace, name, reason string) (found eventsv1.Event) {
	c.t.Helper()
	var all []eventsv1.Event
	testenv.Eventually(c.t, fmt.Sprintf("event %s about %s %s", reason, kind, name), func() bool {
		all = c.eventsOf(kind, namespace, name)
		at := slices.IndexFunc(all, func(e eventsv1.Event) bool { return e.Reason == reason })
		if at >= 0 {
			found = all[at]
		}
		return at >= 0
	})
	if found.Type != corev1.EventTypeWarning || found.Note == "" || found.Action == "" {
		c.t.Errorf("event %+v", found)
	}
	return found
}

func eventsOfFullNode(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	m.start(map[string]string{"MAX_ENI": "1", "MY_POD_NAME": "aws-node-x7k2p"})
	for range 9 {
		if r := m.addMore(); !r.Success {
			t.Fatalf("%+v", r)
		}
	}
	pod := m.bind("tenth")
	var detail string
	const times = 20
	for range times {
		r := m.add(pod)
		if r.Success || r.Cause != "pool-full" {
			t.Fatalf("%+v", r)
		}
		detail = r.Detail
	}
	e := c.event("Pod", c.namespace, pod.Name, "PoolFull")
	if e.Regarding.UID != pod.UID || e.ReportingInstance != m.reporter() || e.Action != "AssignAddress" {
		t.Errorf("event %+v", e)
	}
	if !strings.Contains(e.Note, strings.SplitN(detail, ";", 2)[0]) {
		t.Errorf("the event says %q, the answer %q", e.Note, detail)
	}
	c.event("Pod", c.namespace, c.failOther(m), "PoolFull") // by then the repetitions have been processed
	if all := c.eventsOf("Pod", c.namespace, pod.Name); len(all) != 1 {
		t.Errorf("%d failures made %d events", times, len(all))
	}
}

// failOther fails the ADD of one more pod and returns the pod's name.
func (c *cluster) failOther(m *member) string {
	c.t.Helper()
	pod := m.bind("other")
	if r := m.add(pod); r.Success {
		c.t.Fatalf("%+v", r)
	}
	return pod.Name
}

func eventsOfFullSubnet(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	if _, err := c.world.Occupy(c.subnet.ID, 1<<12); err != nil {
		t.Fatal(err)
	}
	m.start(map[string]string{"CNI_ADD_WAIT": "1s"})
	pod := m.bind("p")
	if r := m.add(pod); r.Success || r.Cause != "subnet-exhausted" {
		t.Fatalf("%+v", r)
	}
	c.event("Pod", c.namespace, pod.Name, "SubnetExhausted")
	if e := c.event("Node", "", m.name, "SubnetExhausted"); !strings.Contains(e.Note, "subnet") || string(e.Regarding.UID) != m.name {
		t.Errorf("event %+v", e)
	}
}

// reporter is the reportingInstance of the node's events, in the form that client-go gives
// upstream's. Here the host's name is the instance id.
func (m *member) reporter() string { return "aws-node-" + m.InstanceID }

// missingPermission returns upstream's note, word for word.
func missingPermission(action string) string {
	return "Unauthorized operation: failed to call " + action + " due to missing permissions. Please refer https://github.com/aws/amazon-vpc-cni-k8s/blob/master/docs/iam-policy.md to attach relevant policy to IAM role"
}

// eventsOfRefusedStart: a daemon that EC2 refuses at its start exits. Each start leaves
// upstream's event on the daemon's pod and upstream's line in the log.
func eventsOfRefusedStart(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	own := c.api.CreatePod(t, metav1.NamespaceSystem, c.namespace+"-daemon", m.name, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	c.refusing = true
	if err := c.world.SetPolicy(m.InstanceID, `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":["ec2:*"],"Resource":"*"}]}`); err != nil {
		t.Fatal(err)
	}
	const action = "ec2:DescribeNetworkInterfaces"
	for start := 1; start <= 2; start++ {
		m.endsFor(action, map[string]string{"MY_POD_NAME": own.Name})
		var found []eventsv1.Event
		for _, e := range c.eventsOf("Pod", metav1.NamespaceSystem, own.Name) {
			if e.Reason == "MissingIAMPermissions" && e.Action == action {
				found = append(found, e)
			}
		}
		if len(found) != start {
			t.Fatalf("start %d: %d events about the daemon's pod", start, len(found))
		}
		for _, e := range found {
			if e.Note != missingPermission(action) || e.Type != corev1.EventTypeWarning || e.Regarding.UID != own.UID || e.ReportingController != "aws-node" || e.ReportingInstance != m.reporter() {
				t.Errorf("event %+v", e)
			}
		}
		if n := strings.Count(strings.Join(daemonLog(t, m.Node), "\n"), `"msg":"`+missingPermission(action)+`"`); n != start {
			t.Errorf("start %d: %d lines in the log", start, n)
		}
	}
}

// eventsOfMissingPermission: upstream's event, word for word, on the daemon's pod.
func eventsOfMissingPermission(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	own := c.api.CreatePod(t, metav1.NamespaceSystem, c.namespace+"-daemon", m.name, func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	const policy = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:Describe*","ec2:CreateTags"],"Resource":"*"}]}`
	c.refusing = true
	if err := c.world.SetPolicy(m.InstanceID, policy); err != nil {
		t.Fatal(err)
	}
	m.start(map[string]string{"MY_POD_NAME": own.Name, "CNI_ADD_WAIT": "1s", "WARM_IP_TARGET": "1"})
	pod := m.bind("p")
	if r := m.add(pod); r.Success || r.Cause != "ec2-unauthorized" {
		t.Fatalf("%+v", r)
	}
	note := missingPermission("ec2:AssignPrivateIpAddresses")
	for _, about := range []struct {
		kind, namespace, name, uid string
	}{{"Pod", metav1.NamespaceSystem, own.Name, string(own.UID)}, {"Node", "", m.name, m.name}} {
		e := c.event(about.kind, about.namespace, about.name, "MissingIAMPermissions")
		if e.Note != note || e.Action != "ec2:AssignPrivateIpAddresses" || string(e.Regarding.UID) != about.uid || e.ReportingInstance != m.reporter() {
			t.Errorf("event about the %s: %+v", about.kind, e)
		}
	}
	c.event("Pod", c.namespace, pod.Name, "MissingIAMPermissions")
	for range 5 {
		m.add(pod)
	}
	c.event("Pod", c.namespace, c.failOther(m), "MissingIAMPermissions")
	seen := map[string]bool{}
	for _, e := range c.eventsOf("Pod", metav1.NamespaceSystem, own.Name) {
		if seen[e.Action] {
			t.Errorf("more than one event about the daemon's pod for %s", e.Action)
		}
		seen[e.Action] = true
	}
}

func eventsOfMissingENIConfig(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"}, func(n *corev1.Node) { n.Annotations = map[string]string{"k8s.amazonaws.com/eniConfig": c.namespace} })
	m.start(map[string]string{"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"})
	pod := m.bind("p")
	if r := m.add(pod); r.Success || r.Cause != "eniconfig-missing" {
		t.Fatalf("%+v", r)
	}
	for _, e := range []eventsv1.Event{c.event("Pod", c.namespace, pod.Name, "ENIConfigMissing"), c.event("Node", "", m.name, "ENIConfigMissing")} {
		if !strings.Contains(e.Note, c.namespace) {
			t.Errorf("the event does not name the ENIConfig: %s", e.Note)
		}
	}
}

// eventsOfManyPods: a thousand nodes with a hundred failing pods each must not write a
// hundred thousand events.
func eventsOfManyPods(t *testing.T) {
	c := newCluster(t, fakeaws.Options{})
	m := c.join(fakeaws.InstanceSpec{Type: "m5.large"})
	m.start(map[string]string{"DISABLE_NETWORK_RESOURCE_PROVISIONING": "true"})
	const pods, burst, most = 300, 9, 20 // what the Node's events leave of a burst of 12, plus one per 30 s
	for i := range pods {
		req := sandbox(i)
		req.PodNamespace = c.namespace
		if r := c.wireAdd(m.Node, req); r.Success || r.Cause != "provisioning-disabled" {
			t.Fatalf("%+v", r)
		}
	}
	testenv.Eventually(c.t, "the burst of events", func() bool { return len(c.eventsOf("Pod", c.namespace, "")) >= burst })
	c.settled(m.Node)
	if got := len(c.eventsOf("Pod", c.namespace, "")); got > most {
		t.Errorf("%d events of %d failures", got, pods)
	}
	if failed := value(c.scrape(m.Node), `awscni_failed_add_count{cause="provisioning-disabled"}`); failed != fmt.Sprint(pods) {
		t.Errorf("the metric counts %s failures", failed)
	}
}
