package kube

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPodDoc_Pool: the settings of the pool are read only if the pod itself declares all of them.
func TestPodDoc_Pool(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		container string
		want      map[string]string
	}{
		"declared": {
			`"env":[{"name":"WARM_IP_TARGET","value":"5"},{"name":"ENABLE_POD_ENI","value":"true"},{"name":"CLUSTER_NAME","value":"c"},` +
				`{"name":"MY_NODE_NAME","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}]`,
			map[string]string{"WARM_IP_TARGET": "5", "ENABLE_POD_ENI": "true"},
		},
		"the defaults":             {`"env":[]`, map[string]string{}},
		"from a ConfigMap":         {`"env":[{"name":"WARM_IP_TARGET","valueFrom":{"configMapKeyRef":{"name":"a","key":"b"}}}]`, nil},
		"all of it in a ConfigMap": {`"envFrom":[{"configMapRef":{"name":"a"}}]`, nil},
	} {
		var p podObject
		if err := json.Unmarshal([]byte(`{"spec":{"containers":[{"name":"aws-eks-nodeagent"},{"name":"aws-node",`+row.container+`}]}}`), &p); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(row.want, p.daemon().pool); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestPod_Owner: what a Deployment or a CronJob makes anew stands for it.
func TestPod_Owner(t *testing.T) {
	t.Parallel()
	for want, metadata := range map[string]string{
		"":                 `"ownerReferences":[{"kind":"ReplicaSet","name":"other"},{"kind":"ReplicaSet","controller":true}]`,
		"Deployment/cart":  `"labels":{"pod-template-hash":"7d9f"},"ownerReferences":[{"kind":"ReplicaSet","name":"cart-7d9f","controller":true}]`,
		"ReplicaSet/cart":  `"labels":{"pod-template-hash":"7d9f"},"ownerReferences":[{"kind":"ReplicaSet","name":"cart","controller":true}]`,
		"ReplicaSet/own-1": `"ownerReferences":[{"kind":"ReplicaSet","name":"own-1","controller":true}]`,
		"CronJob/nightly":  `"ownerReferences":[{"kind":"Job","name":"nightly-29384756","controller":true}]`,
		"Job/load-2024":    `"ownerReferences":[{"kind":"Job","name":"load-2024","controller":true}]`,
		"StatefulSet/db":   `"ownerReferences":[{"kind":"Widget","name":"w"},{"kind":"StatefulSet","name":"db","controller":true}]`,
	} {
		var p podObject
		if err := json.Unmarshal([]byte(`{"metadata":{`+metadata+`}}`), &p); err != nil {
			t.Fatal(err)
		}
		if got := p.pod().Owner; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
