// These tests save evidence read from hostile input and load it again. doctor/evidence/file imports this
// package, so the tests are outside it.
package reading_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/doctor/collect/reading"
	"cnictl/doctor/evidence"
	"cnictl/doctor/evidence/file"
)

var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// FuzzDocuments: the evidence from any answer of a node can be saved and loaded.
func FuzzDocuments(f *testing.F) {
	files, _ := filepath.Glob("../../../daemon/api/introspect/testdata/shapes/*.json")
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(`{"kind":"NodeSummary","cards":[]}`))
	f.Add([]byte("awscni_eni_max{a=\"b\"} 3\nprocess_start_time_seconds 5"))
	f.Add([]byte(`{"version":"vpc-cni-ipam/1","allocations":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := &evidence.Reading{At: time.Unix(1_790_000_000, 0).UTC()}
		a := reading.Answer{Status: 200, Body: body}
		reading.Documents(r, map[string]reading.Answer{
			introspect.PathENIs: a, introspect.PathENIConfigs: a, introspect.PathIPAMEnv: a, introspect.PathNetworkEnv: a, introspect.PathSummary: a,
		})
		r.Metrics = reading.Source(reading.Metrics(body))
		r.Checkpoint = reading.Source(reading.Checkpoint("ipam.json", body, nil))
		saved, err := file.Save(&evidence.Evidence{At: r.At, Mode: evidence.ModeLaptop, Nodes: []evidence.Node{{Name: "n", First: r}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Load(saved); err != nil {
			t.Fatalf("%v of\n%s", err, saved)
		}
	})
}

// FuzzKubernetes: the evidence from any object or trust policy can be saved and loaded.
func FuzzKubernetes(f *testing.F) {
	for _, o := range reading.Objects {
		f.Add([]byte(o))
	}
	f.Add([]byte(`{"metadata": {"name": "a"}, "spec": {"podSelector": {}, "features": [{"name": "x"}]}, "data": {"mode": "x"}, "webhooks": [{}], "series": {"count": -1}}`))
	f.Add([]byte(`{"Statement": [{"Effect": "Allow", "Principal": {"Federated": "a:oidc-provider/b"}, "Action": ["x"], "Condition": {"StringLike": {"b:sub": "y"}}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := evidence.Unread(at, evidence.MissingNotAsked)
		one := func(err error, add func()) {
			if err == nil {
				add()
			}
		}
		node, err := reading.Node(raw)
		one(err, func() { r.Node = evidence.Read(node) })
		pod, err := reading.Pod(raw)
		one(err, func() { r.Pods = evidence.Read([]evidence.KubePod{pod}) })
		event, _, err := reading.Event(raw)
		one(err, func() { r.Events = evidence.Read([]evidence.KubeEvent{event}) })
		set, err := reading.DaemonSet(raw)
		one(err, func() { r.DaemonSet = evidence.Read(set) })
		daemon, err := reading.DaemonPod(raw, at)
		one(err, func() { r.DaemonPods = evidence.Read([]evidence.DaemonPod{daemon}) })
		env, err := reading.PodEnv(raw)
		one(err, func() { r.ContainerEnv = evidence.Read(env) })
		config, err := reading.ENIConfig(raw)
		one(err, func() { r.ENIConfigs = evidence.Read([]evidence.ENIConfig{config}) })
		own, _, err := reading.CNINode(raw)
		one(err, func() { r.CNINode = evidence.Read(own) })
		policy, err := reading.SecurityGroupPolicy(raw)
		one(err, func() { r.GroupPolicies = evidence.Read([]evidence.SecurityGroupPolicy{policy}) })
		hook, err := reading.Webhook(raw)
		one(err, func() { r.Webhooks = evidence.Read([]evidence.Webhook{hook}) })
		data, err := reading.ConfigMap(raw)
		one(err, func() { r.ConfigMap = evidence.Read(data) })
		proxy, err := reading.ProxyPod(raw)
		one(err, func() {
			r.KubeProxy = evidence.Read(evidence.KubeProxy{Mode: reading.ProxyMode(raw, data), Pods: []evidence.ProxyPod{proxy}})
		})
		account, err := reading.ServiceAccount(raw)
		one(err, func() { r.ServiceAccount = evidence.Read(account) })
		trust, err := reading.Trust(string(raw))
		one(err, func() { r.Role = evidence.Read(evidence.Role{Via: evidence.ViaIRSA, Trust: trust}) })
		endpoint, err := reading.PolicyEndpoint(raw)
		one(err, func() {
			r.NetworkPolicies = evidence.Read(evidence.NetworkPolicies{Endpoints: []evidence.PolicyEndpoint{endpoint}})
		})
		saved, err := file.Save(&evidence.Evidence{At: at, Mode: evidence.ModeCluster, Nodes: []evidence.Node{{Name: "n", First: r}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Load(saved); err != nil {
			t.Fatalf("%v of\n%s", err, saved)
		}
	})
}
