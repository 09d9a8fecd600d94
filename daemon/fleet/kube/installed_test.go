package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
)

// TestKubeObject: managers are listed with the variables of aws-node that they manage, and only
// annotations that show who created the object are kept.
func TestKubeObject(t *testing.T) {
	t.Parallel()
	got, err := readKubeObject("DaemonSet", []byte(`{"metadata": {"name": "aws-node", "labels": {"helm.sh/chart": "aws-vpc-cni-1.23.1"},
		"annotations": {"meta.helm.sh/release-name": "aws-vpc-cni", "kubectl.kubernetes.io/last-applied-configuration": "{}", "team.example/owner": "net"},
		"managedFields": [{"manager": "eks", "operation": "Apply"}, {"manager": "kubectl-set", "operation": "Update", "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
			"k:{\"name\":\"aws-node\"}": {"f:env": {"k:{\"name\":\"WARM_IP_TARGET\"}": {".": {}, "f:value": {}}, "k:{\"name\":\"MAX_ENI\"}": {}, ".": {}}},
			"k:{\"name\":\"other\"}": {"f:env": {"k:{\"name\":\"X\"}": {}}}},
			"f:initContainers": {"k:{\"name\":\"aws-vpc-cni-init\"}": {"f:env": {"k:{\"name\":\"ENABLE_IPv6\"}": {}}}}}}}}}]}}`))
	want := evidence.KubeObject{
		Name: "DaemonSet/aws-node", Labels: map[string]string{"helm.sh/chart": "aws-vpc-cni-1.23.1"}, Annotations: map[string]string{"meta.helm.sh/release-name": "aws-vpc-cni"},
		Managers: []evidence.Manager{{Name: "eks", Operation: "Apply", Env: []string{}}, {Name: "kubectl-set", Operation: "Update", Env: []string{"MAX_ENI", "WARM_IP_TARGET"}, InitEnv: []string{"ENABLE_IPv6"}}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

func TestConflist(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]*evidence.CNIConf{
		`{"data": {"x": "y"}}`: nil,
		`{"binaryData": {"10-aws.conflist": "eyJuYW1lIjogImEiLCAicGx1Z2lucyI6IFt7InR5cGUiOiAiYXdzLWNuaSJ9XX0="}}`: {File: "10-aws.conflist", Types: []string{"aws-cni"}, Valid: true},
		`{"data": {"10-aws.conflist": "{"}}`: {File: "10-aws.conflist", Types: []string{}},
	} {
		got, err := readConflist([]byte(body))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v -want +got:\n%s", body, err, diff)
		}
	}
}

// TestQuota: a quota counts system-node-critical pods unless its scope excludes that priority.
func TestQuota(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]string{
		``: "q",
		`{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}`:    "q",
		`{"scopeName": "PriorityClass", "operator": "Exists"}`:                                    "q",
		`{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}`:                     "",
		`{"scopeName": "PriorityClass", "operator": "NotIn", "values": ["system-node-critical"]}`: "",
		`{"scopeName": "PriorityClass", "operator": "DoesNotExist"}`:                              "",
		`{"scopeName": "BestEffort", "operator": "Exists"}`:                                       "",
	} {
		got, err := readQuota([]byte(`{"metadata": {"name": "q"}, "spec": {"scopeSelector": {"matchExpressions": [` + scope + `]}}}`))
		if err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", scope, got, err, want)
		}
	}
}

// TestAdmission: only webhooks for the DaemonSet, or for its pods when they are replaced, count.
func TestAdmission(t *testing.T) {
	t.Parallel()
	const (
		pods       = `"rules": [{"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods"]}]`
		daemonSets = `"rules": [{"apiGroups": ["apps"], "operations": ["*"], "resources": ["daemonsets"]}]`
	)
	for hook, want := range map[string]int{
		pods:       1,
		daemonSets: 1,
		`"rules": [{"apiGroups": ["apps"], "operations": ["*"], "resources": ["deployments"]}]`:                                                        0,
		`"rules": [{"apiGroups": ["apps"], "operations": ["*"], "resources": ["pods"]}]`:                                                               0,
		`"rules": [{"apiGroups": ["batch"], "operations": ["*"], "resources": ["*"]}]`:                                                                 0,
		`"rules": [{"apiGroups": ["*"], "operations": ["UPDATE"], "resources": ["*"]}]`:                                                                1,
		`"rules": [{"apiGroups": [""], "operations": ["CONNECT", "UPDATE"], "resources": ["pods"]}]`:                                                   0,
		`"rules": [{"apiGroups": [""], "operations": ["CREATE"], "resources": ["pods/*", "pods/exec"]}]`:                                               0,
		`"rules": [{"apiGroups": [""], "operations": ["*"], "resources": ["configmaps", "*/*"]}]`:                                                      1,
		`"rules": [{"apiGroups": ["*"], "operations": ["*"], "resources": ["*"], "scope": "Cluster"}]`:                                                 0,
		pods + `, "objectSelector": {"matchLabels": {"k8s-app": "aws-node"}}`:                                                                          1,
		daemonSets + `, "objectSelector": {"matchLabels": {"k8s-app": "aws-node"}}`:                                                                    0,
		pods + `, "objectSelector": {"matchExpressions": [{"key": "k8s-app", "operator": "NotIn", "values": ["aws-node"]}]}`:                           0,
		daemonSets + `, "namespaceSelector": {"matchLabels": {"team": "shop"}}`:                                                                        0,
		pods + `, "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}`:                                                1,
		pods + `, "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]}`: 0,
		pods + `, "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["shop"]}]}`:           0,
		pods + `, "namespaceSelector": {"matchExpressions": [{"key": "inject", "operator": "Exists"}]}`:                                                0,
		pods + `, "namespaceSelector": {"matchExpressions": [{"key": "inject", "operator": "DoesNotExist"}]}`:                                          1,
		pods + `, "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "DoesNotExist"}]}`:                     0,
	} {
		of := reviewed{Pod: map[string]string{"k8s-app": "aws-node"}, Namespace: map[string]string{"kubernetes.io/metadata.name": "kube-system"}}
		got, err := readAdmission([]byte(`{"metadata": {"name": "c"}, "webhooks": [{"name": "w", "clientConfig": {"service": {"namespace": "p", "name": "s"}}, `+hook+`}]}`), of)
		if err != nil || len(got) != want {
			t.Errorf("%s: %+v, %v; want %d", hook, got, err, want)
		}
		if len(got) == 1 && got[0] != (evidence.Admission{Name: "c/w", FailurePolicy: "Fail", Service: "p/s"}) {
			t.Errorf("%s: %+v", hook, got[0])
		}
	}
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	got, err := readMonitor("PodMonitor", []byte(`{"metadata": {"namespace": "kube-system", "name": "aws-node"}, "spec": {"selector": {"matchLabels": {"k8s-app": "aws-node"}}, "podMetricsEndpoints": [{"port": "metrics"}, {"path": "/x"}]}}`))
	want := evidence.Monitor{Name: "PodMonitor/kube-system/aws-node", Selector: map[string]string{"k8s-app": "aws-node"}, Ports: []string{"metrics"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	labels, err := readNamespaceLabels([]byte(`{"metadata": {"labels": {"a": "b"}}}`))
	if err != nil || labels["a"] != "b" {
		t.Errorf("%v, %v", labels, err)
	}
}
