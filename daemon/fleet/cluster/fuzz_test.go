package cluster

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/kubeobject"
)

// FuzzReadList: a list that is read is what encoding/json makes of it as a whole, and what
// is not JSON is an error; a target can be made of whatever its items are.
func FuzzReadList(f *testing.F) {
	f.Add([]byte(`{"metadata":{"resourceVersion":"7","continue":"x"},"items":[{"metadata":{"name":"a","labels":{"eks.amazonaws.com/compute-type":"fargate"}},"status":{"capacity":{"pods":"1k","vpc.amazonaws.com/pod-eni":"9"},"conditions":[{"type":"Ready","status":"True"}]}}]}`))
	f.Add([]byte(`{"items":null,"kind":"List"}`))
	f.Add([]byte(`{"items":[{"metadata":{"name":"aws-node-x","uid":"u"},"spec":{"nodeName":"a","containers":[{"name":"aws-node","env":[{"name":"INTROSPECTION_BIND_ADDRESS","value":"unix:/x"}]}]},"status":{"phase":"Running","containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}}]}`))
	c := &Cluster{cfg: Config{Namespace: DefaultNamespace, Selector: DefaultSelector, Via: ViaAuto}}
	f.Fuzz(func(t *testing.T, text []byte) {
		var whole struct {
			Metadata listMeta          `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		wholeErr := json.Unmarshal(text, &whole)
		count := 0
		meta, err := readList(bytes.NewReader(text), func(raw json.RawMessage) error { count++; return nil })
		if wholeErr != nil && err == nil && !json.Valid(text) && !hasTail(text) {
			t.Errorf("read what is no list: %v", wholeErr)
		}
		if err == nil && wholeErr == nil && !repeats(text) && (count != len(whole.Items) || meta != whole.Metadata) {
			t.Errorf("%d items and %+v, want %d and %+v", count, meta, len(whole.Items), whole.Metadata)
		}
		var nodes []*introspect.NodeObject
		_, _ = readList(bytes.NewReader(text), func(n nodeDoc) error { nodes = append(nodes, n.object()); return nil })
		_, _ = readList(bytes.NewReader(text), func(p podDoc) error {
			p.pod()
			d := p.daemon()
			for _, n := range nodes {
				if d.runs() {
					d.settings.listens()
					continue // the way is the API server's
				}
				if g := c.target("n", n, &d); g.Absent == nil || g.Object.Daemon == nil {
					t.Errorf("a daemon that does not run is asked: %+v", g)
				}
			}
			return nil
		})
		_, _ = readList(bytes.NewReader(text), func(d kubeobject.Event) error {
			if e := eventOf(&d); !e.At.IsZero() && e.At.Location() != time.UTC {
				t.Error("a time that is not UTC")
			}
			return nil
		})
	})
}

// hasTail reports whether more follows a first value, which a stream's reader leaves.
func hasTail(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	return d.Decode(new(json.RawMessage)) == nil && d.InputOffset() < int64(len(bytes.TrimSpace(text)))
}

// repeats reports whether a member may be there twice, or under a name in other letters:
// there the two readers differ.
func repeats(text []byte) bool {
	lower := bytes.ToLower(text)
	return bytes.Count(lower, []byte(`items`)) > 1 || bytes.Count(lower, []byte(`metadata`)) > 1 || bytes.Contains(text, []byte(`\u`)) || !bytes.Contains(text, []byte(`"items"`)) && bytes.Contains(lower, []byte(`"items"`)) ||
		!bytes.Contains(text, []byte(`"metadata"`)) && bytes.Contains(lower, []byte(`"metadata"`)) || !isASCII(text)
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b > 127 {
			return false
		}
	}
	return true
}
