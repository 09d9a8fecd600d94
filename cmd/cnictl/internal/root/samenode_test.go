package root_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/record"
	"cnictl/daemon/fleet/watch"
	"cnictl/doctor/causes"
	"cnictl/doctor/collect/watched"
	"cnictl/doctor/evidence"
	"cnictl/testenv/kube/fleetsim"
)

// TestSame_Node: what a Node's conditions and taints show is the same finding for the doctor on the cluster, on a
// recording of it, and for a screen that opens the node.
func TestSame_Node(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 3, Sound: true, Churn: -1})
	name := fleetsim.NodeName(1)
	front := before(t, sim)
	front.change = func(r *http.Request, body []byte) []byte {
		if r.URL.Path != "/api/v1/nodes" {
			return body
		}
		return faulty(t, body, name)
	}
	want := []string{"boot/monitor-latched", "obs/startup-taint"}
	check := func(who, stdout string) {
		t.Helper()
		var r document.DoctorReport
		if err := json.Unmarshal([]byte(stdout), &r); err != nil {
			t.Fatalf("%s: %v\n%s", who, err, stdout)
		}
		var codes []string
		for _, f := range r.Findings {
			if f.Severity != "info" && slices.Contains(f.Nodes, name) {
				codes = append(codes, f.Code)
			}
		}
		if slices.Sort(codes); !slices.Equal(codes, want) {
			t.Errorf("%s: %v on the node, want %v", who, codes, want)
		}
	}
	stdout, stderr := ran(t.Context(), t, front, nil, "doctor --once -o json")
	check("the cluster"+stderr, stdout)

	file := filepath.Join(t.TempDir(), "a.cnirec")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	once := sync.OnceFunc(cancel)
	front.fails = func(r *http.Request) bool { // the node was sampled: its pods are listed for the recording
		if r.URL.Path == "/api/v1/pods" && strings.Contains(r.URL.Query().Get("fieldSelector"), name) {
			once()
		}
		return false
	}
	_, stderr = ran(ctx, t, front, nil, "record "+file)
	stdout, more := ran(t.Context(), t, front, nil, "doctor -o json --replay "+file)
	check("the recording"+stderr+more, stdout)

	opened, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	p, err := record.Open(opened, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, end := p.Range()
	p.Seek(end)
	ev := watched.OfNode(p.View().Node(name), watch.Detail{}, evidence.Scope{Node: name}, p.Now())
	text, err := json.Marshal(causes.Diagnose(ev, causes.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	check("the screen", string(text))
}

// faulty gives a node, listed or watched, a stale condition and a taint that stays.
func faulty(t *testing.T, body []byte, name string) []byte {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Error(err)
		return body
	}
	items, _ := all["items"].([]any)
	for _, item := range append(items, all["object"], all) {
		node, _ := item.(map[string]any)
		meta, _ := node["metadata"].(map[string]any)
		if meta["name"] != name {
			continue
		}
		node["spec"].(map[string]any)["taints"] = []any{map[string]any{"key": "ebs.csi.aws.com/agent-not-ready", "effect": "NoExecute"}}
		status := node["status"].(map[string]any)
		status["conditions"] = append(status["conditions"].([]any), map[string]any{
			"type": "NetworkingReady", "status": "False", "reason": "IPAMDNotReady", "message": "IPAMD is not ready",
			"lastTransitionTime": "2026-11-21T08:00:00Z",
		})
	}
	out, err := json.Marshal(all)
	if err != nil {
		t.Error(err)
	}
	return out
}
