package kube

import (
	"encoding/json"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

// FuzzObjects: any listed object can become a target, and events have their time in UTC.
func FuzzObjects(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"eks.amazonaws.com/compute-type":"fargate"}},"status":{"capacity":{"pods":"1k","vpc.amazonaws.com/pod-eni":"9"},"conditions":[{"type":"Ready","status":"True"}]}}`))
	f.Add([]byte(`{"metadata":{"name":"aws-node-x","uid":"u"},"spec":{"nodeName":"a","containers":[{"name":"aws-node","env":[{"name":"INTROSPECTION_BIND_ADDRESS","value":"unix:/x"}]}]},"status":{"phase":"Running","containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`))
	f.Add([]byte(`{"metadata":{"uid":"e"},"lastTimestamp":"2026-01-01T00:00:00+01:00"}`))
	c := &Cluster{cfg: Config{Namespace: DefaultNamespace, Selector: DefaultSelector, Via: ViaAuto}}
	f.Fuzz(func(t *testing.T, text []byte) {
		node := &document.NodeObject{}
		var n nodeObject
		if json.Unmarshal(text, &n) == nil {
			node = n.object()
		}
		var p podObject
		if json.Unmarshal(text, &p) == nil {
			p.pod()
			d := p.daemon()
			if d.runs() {
				d.settings.listens() // via the API server
			} else if g := c.target("n", node, &d); g.Absent == nil || g.Object.Daemon == nil {
				t.Errorf("a daemon that does not run is asked: %+v", g)
			}
		}
		var d kubeobject.Event
		if json.Unmarshal(text, &d) == nil {
			if e := eventOf(&d); !e.At.IsZero() && e.At.Location() != time.UTC {
				t.Error("a time that is not UTC")
			}
		}
	})
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var comparers = cmp.Options{cmpopts.EquateComparable(netip.Addr{})}

// FuzzKubernetes: the evidence from any object can be saved and loaded.
func FuzzKubernetes(f *testing.F) {
	for _, o := range seeds {
		f.Add([]byte(o))
	}
	f.Add([]byte(`{"metadata": {"name": "a"}, "spec": {"podSelector": {}, "features": [{"name": "x"}]}, "data": {"mode": "x"}, "webhooks": [{}], "series": {"count": -1}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := evidence.Unread(noon, evidence.MissingNotAsked)
		one := func(err error, add func()) {
			if err == nil {
				add()
			}
		}
		node, err := readNode(raw)
		one(err, func() { r.Node = evidence.Read(node) })
		pod, err := readPod(raw)
		one(err, func() { r.Pods = evidence.Read([]evidence.KubePod{pod}) })
		event, _, err := readEvent(raw)
		one(err, func() { r.Events = evidence.Read([]evidence.KubeEvent{event}) })
		set, err := readDaemonSet(raw)
		one(err, func() { r.DaemonSet = evidence.Read(set) })
		daemon, err := readDaemonPod(raw, noon)
		one(err, func() { r.DaemonPods = evidence.Read([]evidence.DaemonPod{daemon}) })
		env, err := readPodEnv(raw)
		one(err, func() { r.ContainerEnv = evidence.Read(env) })
		config, err := readENIConfig(raw)
		one(err, func() { r.ENIConfigs = evidence.Read([]evidence.ENIConfig{config}) })
		own, _, err := readCNINode(raw)
		one(err, func() { r.CNINode = evidence.Read(own) })
		policy, err := readSecurityGroupPolicy(raw)
		one(err, func() { r.GroupPolicies = evidence.Read([]evidence.SecurityGroupPolicy{policy}) })
		hook, err := readWebhook(raw)
		one(err, func() { r.Webhooks = evidence.Read([]evidence.Webhook{hook}) })
		data, err := readConfigMap(raw)
		one(err, func() { r.ConfigMap = evidence.Read(data) })
		proxy, err := readProxyPod(raw)
		one(err, func() {
			r.KubeProxy = evidence.Read(evidence.KubeProxy{Mode: readProxyMode(raw, data), Pods: []evidence.ProxyPod{proxy}})
		})
		account, err := readServiceAccount(raw)
		one(err, func() { r.ServiceAccount = evidence.Read(account) })
		endpoint, err := readPolicyEndpoint(raw)
		one(err, func() {
			r.NetworkPolicies = evidence.Read(evidence.NetworkPolicies{Endpoints: []evidence.PolicyEndpoint{endpoint}})
		})
		saved, err := file.Save(&evidence.Evidence{At: noon, Mode: evidence.ModeCluster, Nodes: []evidence.Node{{Name: "n", First: r}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Load(saved); err != nil {
			t.Fatalf("%v of\n%s", err, saved)
		}
	})
}
