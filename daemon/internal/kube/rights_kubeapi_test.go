package kube

import (
	"context"
	"slices"
	"sync"
	"testing"

	"cnictl/daemon/cluster"
	"cnictl/daemon/notice"
	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// TestRights_AreUsed: a client that does everything uses every right of the roles except
// those marked as unused in deploy/rbac. A check when the API server ends finds out whether
// any test uses those.
func TestRights_AreUsed(t *testing.T) {
	t.Parallel()
	s := kubeapi.Shared(t)
	name := s.Name(t)
	s.CreateNamespace(t, name)
	s.CreateNode(t, name)
	pod := s.CreatePod(t, name, "web-0", name)
	create(t, s, cniNodeResource, "CNINode", name, map[string]any{})
	create(t, s, eniConfigResource, "ENIConfig", name, map[string]any{"subnet": "subnet-0123456789abcdef0"})

	c := connect(t, s.Kubeconfig(t, "aws-node"), name)
	annotating := connect(t, s.Kubeconfig(t, "aws-node-annotate"), name)
	for what, do := range map[string]func() error{
		"node":      func() error { _, err := c.Node(t.Context()); return err },
		"pod":       func() error { _, err := c.Pod(t.Context(), name, "web-0"); return err },
		"ENIConfig": func() error { _, err := c.ENIConfig(t.Context(), name); return err },
		"CNINode":   func() error { _, err := c.CNINode(t.Context()); return err },
		"features":  func() error { return c.AddFeatures(t.Context(), sgp) },
		"event": func() error {
			return c.Emit(t.Context(), newEvent(notice.Ref{Kind: "Pod", Namespace: name, Name: "web-0"}))
		},
		"annotation": func() error {
			return annotating.AnnotatePod(t.Context(), cluster.Pod{Namespace: name, Name: "web-0", UID: string(pod.UID)}, podIPsAnnotation, "10.0.0.1", nil)
		},
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	watchAndEnd(t, c)
	for _, of := range []struct{ user, file string }{{"aws-node", "aws-node"}, {"aws-node-annotate", "aws-node-annotate"}} {
		granted, err := deploy.Granted(of.file)
		if err != nil {
			t.Fatal(err)
		}
		unused, err := deploy.Unused(of.file)
		if err != nil {
			t.Fatal(err)
		}
		for _, right := range granted {
			if slices.Contains(unused, right) {
				continue
			}
			testenv.Eventually(t, of.user+" uses "+right, func() bool { // logged when the answer ends
				used, err := s.Used(of.user)
				if err != nil {
					t.Fatal(err)
				}
				return slices.Contains(used, right)
			})
		}
	}
}

// watchAndEnd lets c watch everything that it can, and ends the watches.
func watchAndEnd(t *testing.T, c *Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() { c.Run(ctx, (&record{}).changes()) })
	defer runs.Wait()
	defer cancel()
	synced(t, c)
}
