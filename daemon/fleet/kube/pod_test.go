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
