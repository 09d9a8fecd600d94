//go:build nightly

package e2e_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/aws/vpcrc"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/node"
)

// controlPlane is an API server that reaches the daemons of nodes, each in its own network,
// through an egress proxy, as a managed control plane does.
type controlPlane struct {
	t          *testing.T
	api        *kubeapi.Server
	kubeconfig string // of an administrator

	mu    sync.Mutex            // guards nodes
	nodes map[string]*node.Node // by the address of the daemon's pod
}

func newControlPlane(t *testing.T) *controlPlane {
	t.Helper()
	dir := t.TempDir()
	cp := &controlPlane{t: t, nodes: map[string]*node.Node{}, kubeconfig: filepath.Join(dir, "kubeconfig")}
	socket, config := filepath.Join(dir, "egress"), filepath.Join(dir, "egress.json")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(cp.connect)}
	go func() { _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { server.Close() })
	(&lab{t: t}).write(config, `{"apiVersion":"apiserver.k8s.io/v1beta1","kind":"EgressSelectorConfiguration","egressSelections":[{"name":"cluster","connection":{"proxyProtocol":"HTTPConnect","transport":{"uds":{"udsName":"`+socket+`"}}}}]}`, 0o600)
	cp.api = kubeapi.Start(t, "--egress-selector-config-file="+config)
	admin := cp.api.Admin()
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: admin.Host, CertificateAuthorityData: admin.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {ClientCertificateData: admin.CertData, ClientKeyData: admin.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "admin"}},
		CurrentContext: "c",
	}, cp.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cp
}

// connect forwards a connection of the API server to a node's loopback.
func (cp *controlPlane) connect(w http.ResponseWriter, r *http.Request) {
	host, port, _ := net.SplitHostPort(r.Host)
	cp.mu.Lock()
	n := cp.nodes[host]
	cp.mu.Unlock()
	if r.Method != http.MethodConnect || n == nil {
		http.Error(w, "no node has "+r.Host, http.StatusBadGateway)
		return
	}
	to, err := n.Dial("tcp", net.JoinHostPort("127.0.0.1", port), testenv.Left(cp.t))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer to.Close()
	from, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer from.Close()
	_, _ = io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
	var done sync.WaitGroup
	done.Go(func() { _, _ = io.Copy(to, buffered); to.Close() })
	_, _ = io.Copy(from, to)
	from.Close()
	done.Wait()
}

// inpatient is a cluster node with a fault.
type inpatient struct {
	*member
	plane *controlPlane
	rc    *vpcrc.Controller
	bound *corev1.Pod
}

// disorder is a fault of a cluster node and how to cause it.
type disorder struct {
	instance string // type; default: m5.large
	env      map[string]string
	faults   vpcrc.Faults       // of the controller, from its start
	onNode   bool               // cnictl runs on the node
	joins    func(x *inpatient) // before the controller and the daemon start
	begins   func(x *inpatient) // causes the fault
	ends     func(x *inpatient) // removes the fault, after which the doctor finds nothing; nil if only a new node is healthy
}

// TestDoctor_ProvokedCluster does what TestDoctor_Provoked does, for faults that Kubernetes
// objects show, and examines them from outside the cluster.
func TestDoctor_ProvokedCluster(t *testing.T) {
	t.Parallel()
	plane := newControlPlane(t)
	run := plane.examine
	rowsAtOnce(t, map[string]disorder{
		"sgp/instance-unsupported": {instance: "t3.medium", begins: branchFails, ends: deleted},
		"sgp/no-trunk-slot": {joins: func(x *inpatient) {
			for device := 1; device <= 2; device++ {
				x.attach(device)
			}
		}, begins: branchFails},
		"sgp/trunk-create-failed": {faults: vpcrc.Faults{TrunkUnauthorized: true}, begins: branchFails, ends: func(x *inpatient) {
			x.rc.SetFaults(vpcrc.Faults{})
			x.mark(map[string]any{"changed": "true"}, nil)
			x.withTrunk()
			x.branch()
		}},
		"sgp/trunk-link-missing": {begins: func(x *inpatient) {
			x.withTrunk()
			x.trunkMAC("02:00:00:00:00:01")
			branchFails(x)
			testenv.Eventually(x.c.t, "an ADD that misses the trunk's link", func() bool { return x.add(x.bound).Cause == string(cause.TrunkLinkMissing) })
		}},
		"sgp/annotation-pending":  {faults: vpcrc.Faults{AnnotationDelay: time.Hour}, begins: func(x *inpatient) { x.withTrunk(); branchFails(x) }, ends: deleted},
		"sgp/branch-alloc-failed": {faults: vpcrc.Faults{SubnetFull: true}, begins: awaitsEvent("BranchAllocationFailed"), ends: retried},
		"sgp/annotation-denied":   {faults: vpcrc.Faults{AnnotationDenied: true}, begins: awaitsEvent("BranchENIAnnotationFailed"), ends: deleted},
		"sgp/annotation-malformed": {begins: func(x *inpatient) {
			x.withTrunk()
			if r := x.add(x.bind(x.c.namespace, announced(`[{"ifAddress":"06:25:70:70:b1:69","privateIp":"10.1.0.9","vlanId":0}]`))); r.Success {
				x.c.t.Fatalf("%+v", r)
			}
		}, ends: deleted},
		"sgp/branch-conflict": {begins: func(x *inpatient) {
			x.withTrunk()
			x.bound = x.bind("first", wantsBranch)
			testenv.Eventually(x.c.t, "its announcement", func() bool { return x.c.annotation(x.bound, podENI) != "" })
			own := x.c.annotation(x.bound, podENI)
			x.bound.Annotations = map[string]string{podENI: own} // a write of its status would remove it
			x.branch()
			if r := x.add(x.bind(x.c.namespace, announced(own))); r.Cause != string(cause.BranchConflict) {
				x.c.t.Fatalf("%+v", r)
			}
		}, ends: deleted},
		"sgp/branch-capacity": {faults: vpcrc.Faults{AtCapacity: true}, begins: func(x *inpatient) {
			awaitsEvent("SecurityGroupRequested")(x)
			testenv.Eventually(x.c.t, "it is asked for again", func() bool {
				all, err := x.c.objects(coreEvents).Namespace(x.c.namespace).List(x.c.t.Context(), metav1.ListOptions{})
				return err == nil && slices.ContainsFunc(all.Items, func(e unstructured.Unstructured) bool {
					count, _, _ := unstructured.NestedInt64(e.Object, "count")
					return e.Object["reason"] == "SecurityGroupRequested" && count > 1
				})
			})
		}, ends: deleted},
		"sgp/feature-off": {env: map[string]string{"ENABLE_POD_ENI": "false"}, begins: func(x *inpatient) {
			o := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "vpcresources.k8s.aws/v1beta1", "kind": "SecurityGroupPolicy", "metadata": map[string]any{"name": "all", "namespace": x.c.namespace},
				"spec": map[string]any{"podSelector": map[string]any{}, "securityGroups": map[string]any{"groupIds": []any{"sg-0123456789abcdef0"}}},
			}}
			if _, err := x.c.objects(groupPolicies).Namespace(x.c.namespace).Create(x.c.t.Context(), o, metav1.CreateOptions{}); err != nil {
				x.c.t.Fatal(err)
			}
			x.run("p", 1)
		}, ends: func(x *inpatient) {
			if err := x.c.objects(groupPolicies).Namespace(x.c.namespace).Delete(x.c.t.Context(), "all", metav1.DeleteOptions{}); err != nil {
				x.c.t.Fatal(err)
			}
		}},
		"sgp/limit-not-first": {begins: func(x *inpatient) {
			x.withTrunk()
			pod := x.bind(x.c.namespace, func(p *corev1.Pod) {
				wantsBranch(p)
				p.Spec.Containers = append([]corev1.Container{{Name: "first", Image: "x"}}, p.Spec.Containers...)
			})
			if r := x.add(pod); !r.Success || r.PodVLANID != 0 {
				x.c.t.Fatalf("%+v", r)
			}
		}, ends: deleted},
		"sgp/pod-lookup-failed": {onNode: true, begins: func(x *inpatient) {
			x.withTrunk()
			if err := x.proxy.Refuse(); err != nil {
				x.c.t.Fatal(err)
			}
			if r := x.add(x.bind(x.c.namespace)); r.Success {
				x.c.t.Fatalf("%+v", r)
			}
		}, ends: func(x *inpatient) {
			if err := x.proxy.Restore(); err != nil {
				x.c.t.Fatal(err)
			}
			testenv.Eventually(x.c.t, "a pod that starts", func() bool { return x.addMore().Success })
		}},
		"cfgnet/eniconfig-missing": {env: customNetworking, joins: selects, begins: func(x *inpatient) {
			if r := x.addMore(); r.Success {
				x.c.t.Fatalf("%+v", r)
			}
		}, ends: func(x *inpatient) {
			x.c.eniConfig(x.c.namespace, x.c.ipv4Subnet(32, nil).ID)
			testenv.Eventually(x.c.t, "a pod that starts", func() bool { return x.addMore().Success })
		}},
		"cfgnet/changed-live": {env: customNetworking, joins: func(x *inpatient) {
			selects(x)
			x.c.eniConfig(x.c.namespace, x.c.ipv4Subnet(32, nil).ID)
		}, begins: func(x *inpatient) {
			testenv.Eventually(x.c.t, "a pod that starts", func() bool { return x.addMore().Success })
			x.c.eniConfig(x.c.namespace, x.c.ipv4Subnet(64, nil).ID)
			testenv.Eventually(x.c.t, "the daemon has seen it", func() bool { return x.eventCount(introspect.EventENIConfigUsed) == 2 })
		}},
		"np/strict-default-deny": {env: map[string]string{"NETWORK_POLICY_ENFORCING_MODE": "strict"}, joins: func(x *inpatient) {
			p := policyLab{lab: x.c.lab, n: x.Node, socket: filepath.Join(x.Dir, "npa.sock")}
			x.c.run(x.Node, "/bin/ln", "-s", p.socket, "/var/run/aws-node/npa.sock")
			p.agent()
		}, begins: func(x *inpatient) { x.withTrunk(); x.run("p", 1) }},
	}, run)
	// The permissions apply to the whole cluster.
	t.Run("boot/rbac", func(t *testing.T) {
		var role *unstructured.Unstructured
		run(t, disorder{joins: func(x *inpatient) {
			role = x.c.read(clusterRoles, "", "aws-node")
			x.c.api.ExpectDenied("aws-node", "patch cninodes.vpcresources.k8s.aws")
			less := role.DeepCopy()
			rules, _, _ := unstructured.NestedSlice(less.Object, "rules")
			for _, r := range rules {
				if r := r.(map[string]any); fmt.Sprint(r["resources"]) == "[cninodes]" {
					r["verbs"] = []any{"get", "list", "watch"}
				}
			}
			less.Object["rules"] = rules
			x.c.write(clusterRoles, less)
			x.maySoon("patch cninodes", false)
		}, begins: branchFails, ends: func(x *inpatient) {
			x.c.write(clusterRoles, role)
			x.maySoon("patch cninodes", true)
			x.restart(groupsForPods(nil))
			x.withTrunk()
			x.branch()
		}})
	})
}

// examine causes the fault, runs the doctor, and removes the fault.
func (cp *controlPlane) examine(t *testing.T, d disorder) {
	x := cp.admit(t, d)
	shows := x.shows
	if d.onNode {
		shows = (&patient{lab: x.c.lab, n: x.Node}).shows
	}
	d.begins(x)
	if shows(strings.TrimPrefix(t.Name(), "TestDoctor_ProvokedCluster/")); d.ends == nil {
		return
	}
	d.ends(x)
	shows("")
}

func (cp *controlPlane) admit(t *testing.T, d disorder) *inpatient {
	t.Helper()
	c := &cluster{lab: newLab(t, fakeaws.Options{}), api: cp.api, namespace: cp.api.Name(t)}
	c.api.CreateNamespace(t, c.namespace)
	if d.instance == "" {
		d.instance = "m5.large"
	}
	x := &inpatient{plane: cp, member: c.join(fakeaws.InstanceSpec{Type: d.instance}, func(n *corev1.Node) {
		n.Labels[corev1.LabelInstanceTypeStable], n.Labels[corev1.LabelTopologyZone] = d.instance, c.subnet.AZ
		n.Status.Capacity = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")}
	})}
	cp.mu.Lock()
	address := fmt.Sprintf("192.0.2.%d", len(cp.nodes)+1) // nodes of other worlds have the same addresses
	cp.nodes[address] = x.Node
	cp.mu.Unlock()
	if d.joins != nil {
		d.joins(x)
	}
	x.rc = c.control(x.member, faulty(d.faults))
	env := map[string]string{"CNI_ADD_WAIT": "1s"}
	maps.Copy(env, d.env)
	x.start(groupsForPods(env))
	daemon := c.api.CreatePod(t, "kube-system", "aws-node-"+x.name, x.name, func(p *corev1.Pod) {
		p.Labels = map[string]string{"k8s-app": "aws-node"}
		p.Spec.HostNetwork = true
		p.Spec.Containers[0].Name = "aws-node"
	})
	c.api.SetPodStatus(t, daemon, func(s *corev1.PodStatus) {
		s.Phase, s.PodIP, s.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
		s.ContainerStatuses = []corev1.ContainerStatus{{Name: "aws-node", Ready: true, Image: "x", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	})
	return x
}

var (
	groupPolicies = schema.GroupVersionResource{Group: "vpcresources.k8s.aws", Version: "v1beta1", Resource: "securitygrouppolicies"}
	clusterRoles  = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	accessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	coreEvents    = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

// maySoon waits until a change to the daemon's permission on CNINodes takes effect.
func (x *inpatient) maySoon(right string, want bool) {
	x.c.t.Helper()
	verb, resource, _ := strings.Cut(right, " ")
	testenv.Eventually(x.c.t, fmt.Sprintf("may %s: %v", right, want), func() bool {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": map[string]any{
				"user": "system:serviceaccount:kube-system:aws-node", "resourceAttributes": map[string]any{"verb": verb, "group": "vpcresources.k8s.aws", "resource": resource},
			},
		}}
		answer, err := x.c.objects(accessReviews).Create(x.c.t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			x.c.t.Fatal(err)
		}
		allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
		return allowed == want
	})
}

// branch repeats the ADD of the pod with a branch ENI until it has one.
func (x *inpatient) branch() {
	x.c.t.Helper()
	testenv.Eventually(x.c.t, "a branch pod that starts", func() bool { return x.add(x.bound).Success })
	x.c.api.SetPodStatus(x.c.t, x.bound, func(s *corev1.PodStatus) { s.Phase = corev1.PodRunning })
}

// attach attaches an interface that the daemon did not create.
func (x *inpatient) attach(device int) {
	x.c.t.Helper()
	e, err := x.c.world.CreateENI(fakeaws.ENISpec{SubnetID: x.c.subnet.ID, Tags: map[string]string{"node.k8s.amazonaws.com/no_manage": "true"}})
	if err == nil {
		_, err = x.c.world.AttachENI(fakeaws.AttachSpec{ENIID: e.ID, InstanceID: x.InstanceID, Device: device})
	}
	if err != nil {
		x.c.t.Fatal(err)
	}
}

// trunkMAC gives the trunk's link another MAC address.
func (x *inpatient) trunkMAC(mac string) {
	x.c.t.Helper()
	e, _ := x.c.world.ENI(x.summary().Trunk.ENIID)
	testenv.Eventually(x.c.t, "the trunk's link", func() bool { return x.linkIndex(e.MAC) != 0 })
	x.c.sh(x.Node, "ip link set $(ip -o link | grep "+e.MAC+" | cut -d: -f2 | cut -d@ -f1) address "+mac)
}

// selects makes the node select an ENIConfig.
func selects(x *inpatient) {
	x.mark(nil, map[string]any{"k8s.amazonaws.com/eniConfig": x.c.namespace})
}

// branchFails adds a pod, which must get no branch ENI.
func branchFails(x *inpatient) {
	x.c.t.Helper()
	x.bound = x.bind(x.c.namespace, wantsBranch)
	if r := x.add(x.bound); r.Success {
		x.c.t.Fatalf("%+v", r)
	}
}

// awaitsEvent binds a pod and waits for an event about it.
func awaitsEvent(reason string) func(*inpatient) {
	return func(x *inpatient) {
		x.withTrunk()
		x.bound = x.bind(x.c.namespace, wantsBranch)
		testenv.Eventually(x.c.t, "an event "+reason, func() bool { _, ok := x.c.evented("Pod", x.c.namespace, reason); return ok })
	}
}

func deleted(x *inpatient) { x.c.api.DeletePod(x.c.t, x.c.namespace, x.c.namespace) }

// retried ends the controller's faults and makes it retry the pod.
func retried(x *inpatient) {
	x.rc.SetFaults(vpcrc.Faults{})
	x.c.mergePatch(podObjects, x.c.namespace, x.c.namespace, map[string]any{"metadata": map[string]any{"labels": map[string]any{"changed": "true"}}})
	x.branch()
}

// shows does what patient's shows does; cnictl reads the daemon through the API server.
func (x *inpatient) shows(code string) {
	x.c.t.Helper()
	cmd := exec.CommandContext(x.c.t.Context(), filepath.Join(x.c.binaries, "cnictl"), "doctor", x.name, "--via", "proxy", "--kubeconfig", x.plane.kubeconfig, "-o", "json", "--exit-zero", "--interval", "2s", "--node-timeout", testenv.Left(x.c.t).String())
	cmd.Env = []string{"HOME=" + x.Dir}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		x.c.t.Fatalf("cnictl doctor: %v\n%s", err, &stderr)
	}
	expect(x.c.t, reportOf(x.c.t, out), code)
}
