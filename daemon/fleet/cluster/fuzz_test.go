package cluster

import (
	"encoding/json"
	"testing"
	"time"

	"cnictl/daemon/api/kubeobject"
	"cnictl/daemon/fleet/document"
)

// FuzzObjects: any listed object can become a target, and events have their time in UTC.
func FuzzObjects(f *testing.F) {
	f.Add([]byte(`{"metadata":{"name":"a","labels":{"eks.amazonaws.com/compute-type":"fargate"}},"status":{"capacity":{"pods":"1k","vpc.amazonaws.com/pod-eni":"9"},"conditions":[{"type":"Ready","status":"True"}]}}`))
	f.Add([]byte(`{"metadata":{"name":"aws-node-x","uid":"u"},"spec":{"nodeName":"a","containers":[{"name":"aws-node","env":[{"name":"INTROSPECTION_BIND_ADDRESS","value":"unix:/x"}]}]},"status":{"phase":"Running","containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}`))
	f.Add([]byte(`{"metadata":{"uid":"e"},"lastTimestamp":"2026-01-01T00:00:00+01:00"}`))
	c := &Cluster{cfg: Config{Namespace: DefaultNamespace, Selector: DefaultSelector, Via: ViaAuto}}
	f.Fuzz(func(t *testing.T, text []byte) {
		node := &document.NodeObject{}
		var n nodeDoc
		if json.Unmarshal(text, &n) == nil {
			node = n.object()
		}
		var p podDoc
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
