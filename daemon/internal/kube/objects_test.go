package kube

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
	"cnictl/daemon/cluster"
)

// podJSON is a branch pod as the API server returns it, without most unread fields.
const podJSON = `{"metadata":{"name":"web-0","namespace":"shop","uid":"5a0c","resourceVersion":"12","creationTimestamp":"2026-11-21T14:00:41Z",
  "annotations":{"vpc.amazonaws.com/pod-eni":"[{}]","vpc.amazonaws.com/pod-ips":"10.0.0.7","k8s.amazonaws.com/nicConfig":"multi-nic-attachment","other":"x"},
  "managedFields":[{"manager":"kubelet"}]},
 "spec":{"nodeName":"x","hostNetwork":true,"containers":[
  {"name":"a","resources":{"limits":{"cpu":"1","vpc.amazonaws.com/pod-eni":"1"}}},{"name":"b"}]},
 "status":{"phase":"Running","podIP":"10.0.0.7","podIPs":[{"ip":"10.0.0.7"},{"ip":"2001:db8::7"}]}}`

func TestParsePod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want cluster.Pod
	}{
		"full": {podJSON, cluster.Pod{
			Namespace: "shop", Name: "web-0", UID: "5a0c", NodeName: "x", HostNetwork: true, IPs: 2,
			BranchENI: true, MultiNIC: true, PodENI: "[{}]", PodIPs: "10.0.0.7", CreatedAt: time.Date(2026, 11, 21, 14, 0, 41, 0, time.UTC),
		}},
		"bare":                      {`{"metadata":{"name":"a","namespace":"b"}}`, cluster.Pod{Name: "a", Namespace: "b"}},
		"succeeded":                 {`{"status":{"phase":"Succeeded"}}`, cluster.Pod{Ended: true, Finished: true}},
		"failed":                    {`{"status":{"phase":"Failed"}}`, cluster.Pod{Ended: true, Finished: true}},
		"being deleted":             {`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"}}`, cluster.Pod{Ended: true}},
		"running":                   {`{"metadata":{"deletionTimestamp":null},"status":{"phase":"Running"}}`, cluster.Pod{}},
		"limit by prefix":           {`{"spec":{"containers":[{"resources":{"limits":{"vpc.amazonaws.com/pod-eni-x":1}}}]}}`, cluster.Pod{BranchENI: true}},
		"limit of the second":       {`{"spec":{"containers":[{},{"resources":{"limits":{"vpc.amazonaws.com/pod-eni":"1"}}}]}}`, cluster.Pod{}},
		"request only":              {`{"spec":{"containers":[{"resources":{"requests":{"vpc.amazonaws.com/pod-eni":"1"}}}]}}`, cluster.Pod{}},
		"of an init container only": {`{"spec":{"initContainers":[{"resources":{"limits":{"vpc.amazonaws.com/pod-eni":"1"}}}]}}`, cluster.Pod{}},
		"of a static pod":           {`{"metadata":{"annotations":{"kubernetes.io/config.mirror":"5a0c"}}}`, cluster.Pod{Mirror: true}},
		"another nicConfig":         {`{"metadata":{"annotations":{"k8s.amazonaws.com/nicConfig":"x"}}}`, cluster.Pod{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parsePod([]byte(tc.text))
			tc.want.LinkHash = netnames.Hash(tc.want.Namespace, tc.want.Name, 0)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestParsePod_LongAnnotation: what is kept is bounded, and refused when it is parsed.
func TestParsePod_LongAnnotation(t *testing.T) {
	t.Parallel()
	text := fmt.Sprintf(`{"metadata":{"annotations":{"vpc.amazonaws.com/pod-eni":"[%s]"}}}`, strings.Repeat(" ", 200<<10))
	p, err := parsePod([]byte(text))
	if err != nil || len(p.PodENI) > maxAnnotation {
		t.Fatalf("%d bytes kept, %v", len(p.PodENI), err)
	}
	if _, err := cluster.ParseBranch(p.PodENI, false); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("error %v, want the bound", err)
	}
}

func TestParseNode_Counts(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{
		`"58"`: 58, `58`: 58, `"1k"`: 1000, `"1Ki"`: 1024, `"5e2"`: 500, `"2147483647"`: 2147483647, `"2147483648"`: -1, `"3000M"`: -1, `"5e9"`: -1, `"5e10"`: -1, `"0"`: 0, `""`: -1, `"x"`: -1, `"-1"`: -1, `"1e99"`: -1, `{}`: -1,
		`"` + strings.Repeat("9", 100) + `"`: -1,
	} {
		text := fmt.Sprintf(`{"status":{"capacity":{"pods":%s,"vpc.amazonaws.com/pod-eni":"54"}}}`, value)
		n, err := parseNode([]byte(text))
		if want < 0 {
			if err == nil || len(err.Error()) > 200 {
				t.Errorf("%s: %+v, %v", value, n, err)
			}
			continue
		}
		if err != nil || n.MaxPods != want || n.PodENIs != 54 {
			t.Errorf("%s: %+v, %v", value, n, err)
		}
	}
}

func TestParseCNINode(t *testing.T) {
	t.Parallel()
	got, err := parseCNINode([]byte(`{"metadata":{"name":"x","resourceVersion":"3"},
		"spec":{"features":[{"name":"SecurityGroupsForPods"},{"name":"CustomNetworking","value":"a"}],"managedBy":"eks-auto-mode","tags":{"a":"b"}},
		"status":{"trunkInterface":{"id":"eni-0123456789abcdef0"}}}`))
	want := cniNode{version: "3", node: cluster.CNINode{
		Features:  []cluster.Feature{{Name: "SecurityGroupsForPods"}, {Name: "CustomNetworking", Value: "a"}},
		ManagedBy: "eks-auto-mode", Trunk: "eni-0123456789abcdef0",
	}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(cniNode{})); diff != "" || err != nil {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

// TestPaths: only valid names can become parts of a path.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", ".", "..", "a/b", "a%2fb", "a?b", "A", "a b", "-a", "a..b", "a\n", strings.Repeat("a", 254)} {
		if path, err := pods.object("default", name); err == nil {
			t.Errorf("pod %q has the path %s", name, path)
		}
		if path, err := pods.object(name, "a"); err == nil {
			t.Errorf("namespace %q has the path %s", name, path)
		}
	}
	for name, want := range map[string]string{"ip-10-0-0-1.ec2.internal": "/api/v1/nodes/ip-10-0-0-1.ec2.internal", "a": "/api/v1/nodes/a"} {
		if path, err := nodes.object("", name); path != want || err != nil {
			t.Errorf("%s: %s, %v", name, path, err)
		}
	}
	if path, err := pods.object("shop", "web-0"); path != "/api/v1/namespaces/shop/pods/web-0" || err != nil {
		t.Errorf("%s, %v", path, err)
	}
}

// FuzzParseObjects: no object makes a parser panic, and results are bounded.
func FuzzParseObjects(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(nodeJSON, "", "58")))
	f.Add([]byte(podJSON))
	f.Add([]byte(`{"metadata":{"name":"a"},"spec":{"subnet":"subnet-01234567","securityGroups":["sg-01234567"]}}`))
	f.Add([]byte(`{"metadata":{"name":"x","resourceVersion":"3"},"spec":{"features":[{"name":"SecurityGroupsForPods"}]},"status":{"trunkInterface":{"id":"eni-1"}}}`))
	f.Add([]byte(`{"status":{"capacity":{"pods":"1e999999999","vpc.amazonaws.com/pod-eni":7}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, err := parseNode(raw); err == nil && (n.MaxPods < 0 || n.PodENIs < 0 || n.MaxPods > 1<<31) {
			t.Errorf("%+v", n)
		}
		if p, err := parsePod(raw); err == nil && (len(p.PodENI) > maxAnnotation || len(p.PodIPs) > maxAnnotation) {
			t.Errorf("annotations of %d and %d bytes", len(p.PodENI), len(p.PodIPs))
		}
		if e, err := parseENIConfig(raw); err == nil && (e.problem == "") == (e.config.Subnet == "") {
			t.Errorf("%+v", e)
		}
		_, _ = parseCNINode(raw)
	})
}
