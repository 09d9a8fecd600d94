package kube

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
)

const nodeJSON = `{"metadata": {"name": "n", "creationTimestamp": "2026-11-21T09:00:00Z",
	"labels": {"topology.kubernetes.io/zone": "eu-west-1a", "node.kubernetes.io/instance-type": "m5.large"},
	"annotations": {"vpc.amazonaws.com/primary-ipv6": "x", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
	"spec": {"providerID": "aws:///eu-west-1a/i-0123", "taints": [{"key": "a", "effect": "NoSchedule"}]},
	"status": {"capacity": {"pods": "29", "vpc.amazonaws.com/pod-eni": "9"}, "allocatable": {"pods": "29"},
	"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "cni", "lastTransitionTime": "2026-11-21T09:01:00Z"}],
	"images": [{"names": ["registry.example/shop@sha256:0a", "registry.example/shop:v1"]}, {"names": ["registry.example/aws-vpc-cni-init:v1"]}],
	"nodeInfo": {"kubeletVersion": "v1.35.1", "osImage": "Amazon Linux 2023", "kernelVersion": "6.1"}}}`

func TestNode(t *testing.T) {
	t.Parallel()
	got, err := readNode([]byte(nodeJSON))
	want := evidence.KubeNode{
		Name: "n", InstanceType: "m5.large", Zone: "eu-west-1a", Instance: "i-0123",
		Capacity: evidence.NodeResources{Pods: new(29), PodENI: new(9)}, Allocatable: evidence.NodeResources{Pods: new(29)},
		Taints:      []evidence.Taint{{Key: "a", Effect: "NoSchedule"}},
		Conditions:  []evidence.Condition{{Type: "Ready", Status: "False", Reason: "KubeletNotReady", Message: "cni", Since: noon.Add(-179 * time.Minute)}},
		Labels:      map[string]string{"topology.kubernetes.io/zone": "eu-west-1a", "node.kubernetes.io/instance-type": "m5.large"},
		Annotations: map[string]string{"vpc.amazonaws.com/primary-ipv6": "x"}, Images: []string{"registry.example/aws-vpc-cni-init:v1"}, KubeletVersion: "v1.35.1", OSImage: "Amazon Linux 2023", Kernel: "6.1",
		CreatedAt: noon.Add(-3 * time.Hour),
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

const podJSON = `{"metadata": {"namespace": "shop", "name": "web-1", "creationTimestamp": "2026-11-21T11:59:00Z", "labels": {"app": "web"},
	"annotations": {"vpc.amazonaws.com/pod-eni": "[]", "vault.example/token": "s3cret"}, "ownerReferences": [{"kind": "ReplicaSet", "controller": true}]},
	"spec": {"nodeName": "n", "serviceAccountName": "web", "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists", "effect": "NoSchedule"}],
	"containers": [{"name": "app", "ports": [{"containerPort": 8080, "hostPort": 80}, {"containerPort": 9090}], "resources": {"limits": {"vpc.amazonaws.com/pod-eni": "1", "cpu": 2}}}]},
	"status": {"phase": "Pending", "startTime": "2026-11-21T11:59:10Z", "podIPs": [{"ip": "10.0.0.9"}, {"ip": "?"}], "conditions": [{"type": "Ready", "status": "False"}],
	"containerStatuses": [{"name": "app", "state": {"waiting": {"reason": "ContainerCreating"}}}]}}`

func TestPod(t *testing.T) {
	t.Parallel()
	got, err := readPod([]byte(podJSON))
	want := evidence.KubePod{
		Pod: "shop/web-1", Phase: "Pending", Ready: new(false), Node: new("n"), IPs: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
		CreatedAt: noon.Add(-time.Minute), StartedAt: noon.Add(-50 * time.Second), Reason: "ContainerCreating", Owner: "ReplicaSet", ServiceAccount: "web",
		Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"vpc.amazonaws.com/pod-eni": "[]"}, NodeSelector: map[string]string{"a": "b"},
		Tolerations: []evidence.Toleration{{Effect: "NoSchedule"}}, Containers: []evidence.Container{{Name: "app", HostPorts: []int{80}, Limits: map[string]string{"vpc.amazonaws.com/pod-eni": "1", "cpu": "2"}}},
	}
	if diff := cmp.Diff(want, got, comparers); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	unbound, err := readPod([]byte(`{"metadata": {"namespace": "a", "name": "b"}, "status": {"phase": "Odd", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}]}}`))
	if err != nil || unbound.Node != nil || unbound.Phase != "Unknown" || unbound.Reason != "Unschedulable" || unbound.Message != "0/3 nodes" {
		t.Errorf("%+v, %v", unbound, err)
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	got, node, err := readEvent([]byte(`{"involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1"}, "reason": "FailedCreatePodSandBox", "type": "Warning",
		"message": "sandbox ` + strings.Repeat("ab", 32) + `", "count": 3, "firstTimestamp": "2026-11-21T11:00:00Z", "lastTimestamp": "2026-11-21T12:00:00Z", "source": {"component": "kubelet", "host": "n"}}`))
	want := evidence.KubeEvent{
		At: noon, First: noon.Add(-time.Hour), Count: 3, Type: "Warning", Reason: "FailedCreatePodSandBox", Message: "sandbox <sandbox-id>", Kind: "Pod", Name: "shop/web-1", Source: "kubelet",
	}
	if diff := cmp.Diff(want, got); err != nil || node != "n" || diff != "" {
		t.Errorf("%v %q -want +got:\n%s", err, node, diff)
	}
}

const daemonSetJSON = `{"metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{\"spec\": {\"template\": {\"spec\": {\"containers\": [{\"name\": \"aws-node\", \"env\": [{\"name\": \"WARM_ENI_TARGET\", \"value\": \"2\"}, {\"name\": \"API_TOKEN\", \"value\": \"x1y2z3\"}]}]}}}}"}},
	"status": {"desiredNumberScheduled": 3, "updatedNumberScheduled": 2, "numberReady": 1},
	"spec": {"selector": {"matchLabels": {"k8s-app": "aws-node"}}, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
	"template": {"metadata": {"labels": {"team": "net"}}, "spec": {"imagePullSecrets": [{"name": "registry"}], "volumes": [{"name": "bin", "hostPath": {"path": "/opt/cni/bin"}}, {"name": "empty", "emptyDir": {}}],
	"nodeSelector": {"pool": "a"}, "affinity": {"podAntiAffinity": {}, "podAffinity": {"x": ["y"]}, "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
		{"matchExpressions": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"]}, {"key": "gpu", "operator": "Exists"}]}]}}},
	"securityContext": {}, "initContainers": [{"name": "aws-vpc-cni-init", "image": "init:v1", "securityContext": {"privileged": true, "capabilities": {"add": ["NET_ADMIN"], "drop": null}}}],
	"containers": [{"name": "aws-node", "image": "cni:v1", "env": [{"name": "WARM_ENI_TARGET", "value": "1"}, {"name": "AWS_SECRET_ACCESS_KEY", "value": "x1y2z3"}, {"name": "WARM_ENI_TARGET", "value": "1"},
		{"name": "MY_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "s"}}},
		{"name": "WARM_IP_TARGET", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['warm']"}}}], "envFrom": [{"configMapRef": {"name": "more"}}, {"secretRef": {"name": "s"}}], "ports": [{"name": "metrics"}],
		"resources": {"requests": {"cpu": "25m"}}, "volumeMounts": [{"name": "bin"}, {"name": "empty"}],
		"livenessProbe": {"exec": {"command": ["/app/grpc-health-probe"]}, "timeoutSeconds": 10, "periodSeconds": -1}},
		{"name": "aws-eks-nodeagent", "image": "np:v1", "args": ["--enable-ipv6=false"]}]}}}}`

func TestDaemonSet(t *testing.T) {
	t.Parallel()
	got, err := readDaemonSet([]byte(daemonSetJSON))
	want := &evidence.DaemonSet{
		Containers: []string{"aws-node", "aws-eks-nodeagent"}, InitContainers: []string{"aws-vpc-cni-init"},
		Images:   map[string]string{"aws-node": "cni:v1", "aws-eks-nodeagent": "np:v1", "aws-vpc-cni-init": "init:v1"},
		Env:      map[string]map[string]string{"aws-node": {"WARM_ENI_TARGET": "1", "AWS_SECRET_ACCESS_KEY": "<secret>"}, "aws-eks-nodeagent": {}, "aws-vpc-cni-init": {}},
		Args:     map[string][]string{"aws-eks-nodeagent": {"--enable-ipv6=false"}},
		Liveness: evidence.HealthProbe{Command: []string{"/app/grpc-health-probe"}, TimeoutSeconds: new(10)},
		Mounts:   map[string][]string{"aws-node": {"/opt/cni/bin"}}, CPURequest: "25m",
		Selector: map[string]string{"k8s-app": "aws-node"}, PodLabels: map[string]string{"team": "net"}, MaxUnavailable: "10%", Strategy: "RollingUpdate", PullSecrets: []string{"registry"},
		Volumes: []string{"bin", "empty"}, DuplicateEnv: []string{"WARM_ENI_TARGET"}, EnvFrom: []string{"TOKEN", "WARM_IP_TARGET", "ConfigMap/more", "Secret/s"}, Ports: []string{"metrics"},
		Pods:     evidence.Rollout{Desired: new(3), Updated: new(2), Ready: new(1)},
		Security: map[string][]string{"aws-vpc-cni-init": {"capabilities.add=NET_ADMIN", "privileged=true"}},
		Affinity: []string{"gpu Exists", "kubernetes.io/arch In amd64,arm64", "pod affinity", "pool In a"},
		Applied:  map[string]map[string]string{"aws-node": {"WARM_ENI_TARGET": "2", "API_TOKEN": "<secret>"}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

func TestPodEnv(t *testing.T) {
	t.Parallel()
	got, err := readPodEnv([]byte(`{"metadata": {"name": "aws-node-x"}, "spec": {"nodeName": "n", "initContainers": [{"name": "i"}], "containers": [{"name": "aws-node", "env": [{"name": "WARM_IP_TARGET", "value": "2"},
		{"name": "MY_NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s"}}}]}]}}`))
	want := map[string]map[string]string{"i": {}, "aws-node": {"WARM_IP_TARGET": "2", "MY_NODE_NAME": "n"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

func TestDaemonPod(t *testing.T) {
	t.Parallel()
	got, err := readDaemonPod([]byte(`{"metadata": {"namespace": "kube-system", "name": "aws-node-x"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running", "startTime": "2026-11-20T12:00:00Z",
		"initContainerStatuses": [{"name": "aws-vpc-cni-init", "ready": true, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}],
		"containerStatuses": [{"name": "aws-node", "restartCount": 31, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting failed container"}},
			"lastState": {"terminated": {"reason": "Error", "exitCode": 137, "finishedAt": "2026-11-21T11:58:00Z"}}}]}}`), noon)
	want := evidence.DaemonPod{Pod: "kube-system/aws-node-x", Node: "n", Phase: "Running", Reason: "CrashLoopBackOff", Message: "back-off 40s restarting failed container", Containers: []evidence.DaemonContainer{
		{Name: "aws-vpc-cni-init", Init: true, Ready: new(true), Restarts: new(0), RestartsLastHour: new(0), State: "terminated", Reason: "Completed"},
		{
			Name: "aws-node", Ready: new(false), Restarts: new(31), RestartsLastHour: new(3), State: "waiting", Reason: "CrashLoopBackOff",
			LastState: &evidence.LastState{Reason: "Error", ExitCode: new(137), FinishedAt: noon.Add(-2 * time.Minute)},
		},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

// TestDaemonPod_Unbound: a pod that the scheduler has not bound counts for the node that it is made for, with the
// scheduler's reason.
func TestDaemonPod_Unbound(t *testing.T) {
	t.Parallel()
	got, err := readDaemonPod([]byte(`{"metadata": {"namespace": "kube-system", "name": "aws-node-x"}, "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
		{"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}]}}}}, "status": {"phase": "Pending",
		"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "1 Insufficient cpu"}]}}`), noon)
	want := evidence.DaemonPod{Pod: "kube-system/aws-node-x", Node: "n", Phase: "Pending", Reason: "Unschedulable", Message: "1 Insufficient cpu", Containers: []evidence.DaemonContainer{}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

// TestDaemonPod_RestartsLastHour: the known minimum of restarts that no object dates.
func TestDaemonPod_RestartsLastHour(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		started, finished, waits string
		restarts, want           int // -1 if unknown
	}{
		"none":                    {"2026-11-20T12:00:00Z", "", "", 0, 0},
		"long ago":                {"2026-11-20T12:00:00Z", "2026-11-21T10:59:00Z", "", 7, 0},
		"the last":                {"2026-11-20T12:00:00Z", "2026-11-21T11:30:00Z", "", 7, 1},
		"of a young pod":          {"2026-11-21T11:30:00Z", "2026-11-21T11:50:00Z", "", 7, 7},
		"no time":                 {"2026-11-20T12:00:00Z", "", "", 7, -1},
		"after two":               {"2026-11-20T12:00:00Z", "2026-11-21T11:59:00Z", "back-off 20s restarting", 7, 2},
		"at the longest back-off": {"2026-11-20T12:00:00Z", "2026-11-21T11:59:00Z", "back-off 5m0s restarting", 40, 6},
		"no more than there were": {"2026-11-20T12:00:00Z", "2026-11-21T11:59:00Z", "back-off 5m0s restarting", 2, 2},
		"no back-off":             {"2026-11-20T12:00:00Z", "2026-11-21T11:59:00Z", "back-off soon", 9, 1},
	} {
		body := `{"status": {"startTime": "` + row.started + `", "containerStatuses": [{"restartCount": ` + strconv.Itoa(row.restarts) + `, "state": {"waiting": {"message": "` + row.waits + `"}}`
		if row.finished != "" {
			body += `, "lastState": {"terminated": {"finishedAt": "` + row.finished + `"}}`
		}
		got, err := readDaemonPod([]byte(body+`}]}}`), noon)
		if err != nil {
			t.Fatal(err)
		}
		if n := got.Containers[0].RestartsLastHour; (n == nil) != (row.want < 0) || n != nil && *n != row.want {
			t.Errorf("%s: %v, want %d", name, n, row.want)
		}
	}
}

func TestCustomResources(t *testing.T) {
	t.Parallel()
	config, err := readENIConfig([]byte(`{"metadata": {"name": "a"}, "spec": {"subnet": "subnet-0123456789abcdef0", "securityGroups": ["sg-0123456789abcdef0"]}}`))
	if want := (evidence.ENIConfig{Name: "a", Subnet: "subnet-0123456789abcdef0", SecurityGroups: []string{"sg-0123456789abcdef0"}, Valid: true}); err != nil || !cmp.Equal(config, want) {
		t.Errorf("%+v, %v", config, err)
	}
	if config, err = readENIConfig([]byte(`{"metadata": {"name": "a"}, "spec": {"subnet": "subnet"}}`)); err != nil || config.Valid {
		t.Errorf("%+v, %v", config, err)
	}
	own, node, err := readCNINode([]byte(`{"metadata": {"name": "n"}, "spec": {"features": [{"name": "CustomNetworking", "value": "a"}]}}`))
	if err != nil || node != "n" || len(own.Features) != 1 || own.Features[0] != (evidence.Feature{Name: "CustomNetworking", Value: "a"}) {
		t.Errorf("%+v, %v", own, err)
	}
	policy, err := readSecurityGroupPolicy([]byte(`{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"securityGroups": {"groupIds": ["sg-1"]}, "podSelector":
		{"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "In", "values": ["front"]}, {"key": "zone", "operator": "Exists"}]}}}`))
	want := evidence.SecurityGroupPolicy{Name: "shop/p", PodSelector: &map[string]string{"app": "web", "tier": "front", "zone": "Exists ()"}, GroupIDs: []string{"sg-1"}}
	if diff := cmp.Diff(want, policy); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	hook, err := readWebhook([]byte(`{"metadata": {"name": "w"}, "webhooks": [{"failurePolicy": "Fail"}, {"failurePolicy": "Ignore"}]}`))
	if err != nil || hook != (evidence.Webhook{Name: "w", FailurePolicy: "Fail"}) {
		t.Errorf("%+v, %v", hook, err)
	}
	endpoint, err := readPolicyEndpoint([]byte(`{"metadata": {"namespace": "shop", "name": "p"}, "spec": {"podSelectorEndpoints": [{"namespace": "shop", "name": "web-1"}]}}`))
	if err != nil || endpoint.Name != "shop/p" || len(endpoint.Pods) != 1 || endpoint.Pods[0] != "shop/web-1" {
		t.Errorf("%+v, %v", endpoint, err)
	}
}

func TestProxyMode(t *testing.T) {
	t.Parallel()
	flags := func(arg string) []byte {
		return []byte(`{"spec": {"template": {"spec": {"containers": [{"args": ["` + arg + `"]}]}}}}`)
	}
	for _, row := range []struct {
		set    []byte
		config map[string]string
		want   string
	}{
		{flags("--proxy-mode=ipvs"), nil, "ipvs"},
		{flags("--v=2"), map[string]string{"config": "clusterCIDR: \"\"\nmode: \"nftables\"\n"}, "nftables"},
		{flags("--proxy-mode=ipvs"), map[string]string{"config.conf": "mode: iptables"}, "iptables"},
		{nil, map[string]string{"config": "mode: \"\"\n"}, "iptables"},
		{nil, nil, ""},
		{nil, map[string]string{"config": "mode: kernelspace\n"}, ""},
	} {
		if got := readProxyMode(row.set, row.config); got != row.want {
			t.Errorf("%s %v: %q, want %q", row.set, row.config, got, row.want)
		}
	}
}

// seeds are objects for fuzzing.
var seeds = []string{nodeJSON, podJSON, daemonSetJSON}
