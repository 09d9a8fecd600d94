package root_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"cnictl/cmd/cnictl/internal/root"
	"cnictl/daemon/fleet/document"
	"cnictl/testenv/kube/fleetsim"
)

// TestSilent: for a node whose daemon does not answer, the commands show what Kubernetes
// knows. Only commands that show one node request its pods and CNINode.
func TestSilent(t *testing.T) {
	t.Parallel()
	silent := fleetsim.NodeName(0)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 2, Seed: 1, Churn: -1, Named: map[string][]fleetsim.Trait{silent: {fleetsim.Refused}}})
	run := func(args ...string) (stdout, stderr string, code, lists int) {
		front := before(t, sim)
		ctx := t.Context()
		out, errOut := &lineWriter{}, &lineWriter{}
		code = root.Main(ctx, factory(t, out, errOut), append(args, "--kubeconfig="+front.kubeconfig))
		return out.String(), errOut.String(), code, front.listed("pods")
	}
	out, errOut, code, lists := run("node", "show", silent)
	for _, line := range []string{`(?m)^NODE ` + silent + `  \S+\.\S+  i-\w+  \S+$`, `(?m)^max-pods +[1-9]\d*$`, `(?m)^pods +[1-9]\d*`, `(?m)^CNINode +(none|` + silent + `)`, `(?m)^daemon +aws-node-\w+  Running`} {
		if !regexp.MustCompile(line).MatchString(out) {
			t.Errorf("no %s in\n%s", line, out)
		}
	}
	if code != 5 || !strings.HasPrefix(errOut, "cnictl: node "+silent+" could not be read\n  why: ") || lists != 2 {
		t.Errorf("exit %d, %d lists of pods, %s", code, lists, errOut)
	}
	out, _, code, _ = run("node", "show", silent, "-o", "json")
	var n document.NodeIPAM
	if err := json.Unmarshal([]byte(out), &n); err != nil || code != 5 || n.State != document.StateUnreachable || n.Use == nil {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	if u := n.Use; u.Pods == nil || *u.Pods == 0 || u.PodENIRequests == nil || u.Waiting == nil || u.Reason != "" {
		t.Errorf("use %+v", u)
	}
	if out, _, _, lists := run("nodes", "-o", "json"); strings.Contains(out, `"use"`) || lists != 1 {
		t.Errorf("%d lists of pods; use in\n%s", lists, out)
	}
	out, _, code, _ = run("nodes")
	if row := regexp.MustCompile(`(?m)^` + silent + ` +\S+\.\S+ +\? .*\? +[1-9]\d* +\? +unreachable`); code != 4 || !row.MatchString(out) {
		t.Errorf("exit %d, no %s in\n%s", code, row, out)
	}
}

// TestSilent_NotKnown: what the user may not read is null, with the reason.
func TestSilent_NotKnown(t *testing.T) {
	t.Parallel()
	silent := fleetsim.NodeName(0)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 1, Seed: 1, Churn: -1, Named: map[string][]fleetsim.Trait{silent: {fleetsim.Refused}}})
	front := before(t, sim, "get cninodes")
	ctx := t.Context()
	out, errOut := &lineWriter{}, &lineWriter{}
	code := root.Main(ctx, factory(t, out, errOut), []string{"node", "show", silent, "-o", "json", "--kubeconfig=" + front.kubeconfig})
	var n document.NodeIPAM
	if err := json.Unmarshal([]byte(out.String()), &n); err != nil || code != 5 || n.Use == nil {
		t.Fatalf("exit %d, %v: %s", code, err, errOut)
	}
	if u := n.Use; u.Pods == nil || u.CNINode != nil || !strings.Contains(u.Reason, "cninodes") {
		t.Errorf("use %+v", u)
	}
}
