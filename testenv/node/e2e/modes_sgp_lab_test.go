package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/vpcrc"
)

// podENI is both the resource that a pod requests and the annotation that it gets.
const podENI = "vpc.amazonaws.com/pod-eni"

var (
	podObjects  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeObjects = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// controlScale is the length here of a second of the resource controller, in seconds.
const controlScale = 0.1

// branchAfter is the time from a pod's binding to its branch ENI: upstream takes
// 0.5 to 3 s.
const branchAfter = time.Second

// control starts the VPC resource controller for a member.
func (c *cluster) control(m *member, edit ...func(*vpcrc.Options)) *vpcrc.Controller {
	c.t.Helper()
	o := vpcrc.Options{
		Objects: c.api.Objects(), World: c.world, Node: m.name, Scale: controlScale,
		Timing: vpcrc.Timing{BranchAfter: time.Duration(float64(branchAfter) / controlScale)},
	}
	for _, e := range edit {
		e(&o)
	}
	rc, err := vpcrc.Start(c.t.Context(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(rc.Stop)
	return rc
}

func faulty(f vpcrc.Faults) func(*vpcrc.Options) { return func(o *vpcrc.Options) { o.Faults = f } }

// groupsForPods returns the settings for security groups for pods, with a small pool.
func groupsForPods(more map[string]string) map[string]string {
	env := map[string]string{"ENABLE_POD_ENI": "true", "WARM_IP_TARGET": "2", "CNI_ADD_WAIT": "20s"}
	maps.Copy(env, more)
	return env
}

// wantsBranch changes a pod as the mutating webhook does.
func wantsBranch(p *corev1.Pod) {
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{podENI: resource.MustParse("1")}
}

// announced gives a pod its annotation at creation.
func announced(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		wantsBranch(p)
		p.Annotations = map[string]string{podENI: value}
	}
}

// withTrunk waits until the member's daemon has found its trunk, and returns the trunk.
func (m *member) withTrunk() fakeaws.ENI {
	m.c.t.Helper()
	testenv.Eventually(m.c.t, "a trunk in the daemon's book", func() bool { return m.summary().Trunk.ENIID != "" })
	e, there := m.c.world.ENI(m.summary().Trunk.ENIID)
	if !there || e.Type != "trunk" {
		m.c.t.Fatalf("the daemon's trunk is %+v", e)
	}
	return e
}

func (m *member) summary() (s introspect.Summary) {
	m.c.t.Helper()
	m.c.get(m.Node, introspect.PathSummary, &s)
	return s
}

// linkIndex returns the index of the node's link with a MAC.
func (m *member) linkIndex(mac string) (index int) {
	m.c.t.Helper()
	err := m.NS.Do(func() error {
		links, err := net.Interfaces()
		for _, l := range links {
			if l.HardwareAddr.String() == mac && !strings.HasPrefix(l.Name, "vlan") {
				index = l.Index
			}
		}
		return err
	})
	if err != nil {
		m.c.t.Fatal(err)
	}
	return index
}

// branchOf is the branch ENI that a pod's annotation announces.
type branchOf struct {
	ENI  string `json:"eniId"`
	MAC  string `json:"ifAddress"`
	IPv4 string `json:"privateIp"`
	IPv6 string `json:"ipv6Addr"`
	VLAN int32  `json:"vlanId"`
}

func (c *cluster) branchOf(pod *corev1.Pod) branchOf {
	c.t.Helper()
	var out []branchOf
	if err := json.Unmarshal([]byte(c.annotation(pod, podENI)), &out); err != nil || len(out) == 0 {
		c.t.Fatalf("annotation of %s: %q, %v", pod.Name, c.annotation(pod, podENI), err)
	}
	return out[0]
}

func (c *cluster) annotation(pod *corev1.Pod, key string) string {
	c.t.Helper()
	return c.read(podObjects, pod.Namespace, pod.Name).GetAnnotations()[key]
}

func (c *cluster) read(kind schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	c.t.Helper()
	o, err := c.objects(kind).Namespace(namespace).Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return o
}

func (c *cluster) mergePatch(kind schema.GroupVersionResource, namespace, name string, change any, sub ...string) {
	c.t.Helper()
	body, err := json.Marshal(change)
	if err == nil {
		_, err = c.objects(kind).Namespace(namespace).Patch(c.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, sub...)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// features returns the features of the member's CNINode as "name=value", nil if it has none.
func (m *member) features() []string {
	m.c.t.Helper()
	o, err := m.c.objects(cniNodes).Get(m.c.t.Context(), m.name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return featuresOf(o)
}

func featuresOf(o *unstructured.Unstructured) (out []string) {
	list, _, _ := unstructured.NestedSlice(o.Object, "spec", "features")
	for _, f := range list {
		f, _ := f.(map[string]any)
		value, _ := f["value"].(string)
		out = append(out, fmt.Sprintf("%v=%s", f["name"], value))
	}
	return out
}

const wantsTrunk = "SecurityGroupsForPods="

func (m *member) awaitFeature(feature string) {
	m.c.t.Helper()
	testenv.Eventually(m.c.t, "feature "+feature, func() bool { return slices.Contains(m.features(), feature) })
}

// log returns the log of the member's daemon.
func (m *member) log() string {
	m.c.t.Helper()
	b, err := os.ReadFile(filepath.Join(m.Dir, "log", "ipamd.log"))
	if err != nil {
		m.c.t.Fatal(err)
	}
	return string(b)
}

// logged waits for a log line that contains all the parts.
func (m *member) logged(parts ...string) {
	m.c.t.Helper()
	testenv.Eventually(m.c.t, fmt.Sprintf("a log line with %q", parts), func() bool {
		for line := range strings.Lines(m.log()) {
			if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
				return true
			}
		}
		return false
	})
}

// failsWith adds a pod and expects a failure with the cause, and upstream's log line about it.
func (m *member) failsWith(pod *corev1.Pod, code, line string) *cniwire.AddReply {
	m.c.t.Helper()
	r := m.add(pod)
	if r.Success || r.Cause != code || r.Detail == "" || len(r.Allocations) > 0 {
		m.c.t.Errorf("%s: want cause %s, got %+v", pod.Name, code, r)
	}
	m.logged(line, pod.Name)
	return r
}

// notInThePool checks that an address is not in the daemon's pool.
func (m *member) notInThePool(addr string) {
	m.c.t.Helper()
	allocations, err := m.Allocations()
	if err != nil {
		m.c.t.Fatal(err)
	}
	for _, a := range allocations {
		if a.Address().String() == addr {
			m.c.t.Errorf("%s is in the checkpoint: %+v", addr, a)
		}
	}
	var enis introspect.ENIs
	m.c.get(m.Node, "/v1/enis", &enis)
	if text, err := json.Marshal(enis); err != nil || strings.Contains(string(text), `"`+addr+`/`) || strings.Contains(string(text), `"`+addr+`"`) {
		m.c.t.Errorf("%s is in the pool: %s, %v", addr, text, err)
	}
}

// untouched checks that a trunk has only what it was created with.
func (c *cluster) untouched(trunk fakeaws.ENI) {
	c.t.Helper()
	now, there := c.world.ENI(trunk.ID)
	if !there || len(now.SecondaryIPs) > 0 || len(now.Prefixes) > 0 || !maps.Equal(now.Tags, trunk.Tags) || now.Attachment != trunk.Attachment {
		c.t.Errorf("the trunk has become %+v, was %+v", now, trunk)
	}
}

// neverWrote checks that the daemon has not tried to write the Node: the API server would have
// denied it, or the old label would be set.
func (m *member) neverWrote() {
	m.c.t.Helper()
	denied, err := m.c.api.Denied()
	if err != nil {
		m.c.t.Fatal(err)
	}
	for _, d := range denied {
		if strings.HasPrefix(d.User, "aws-node") && strings.HasSuffix(d.Right, " nodes") || strings.Contains(d.Right, "nodes/status") {
			m.c.t.Errorf("the daemon tried: %v", d)
		}
	}
	if _, there := m.c.read(nodeObjects, "", m.name).GetLabels()["vpc.amazonaws.com/has-trunk-attached"]; there {
		m.c.t.Error("the Node has the label has-trunk-attached")
	}
}

// gatewayOf returns the first address of a subnet.
func gatewayOf(s fakeaws.Subnet) netip.Addr { return s.CIDR.Masked().Addr().Next() }
