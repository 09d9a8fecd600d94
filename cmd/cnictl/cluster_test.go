package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cnictl/testenv/fleetsim"
)

// TestScript_Cluster runs the real main against a simulated API server and its nodes:
// seven healthy ones, one that is dead, one of the original and one of Fargate. $ADMIN,
// $NO_NODES, $NO_FORWARD, $EXPIRED, $NO_AWS and $AWAY are kubeconfigs; $DEAD, $OLD and
// $FARGATE are nodes.
func TestScript_Cluster(t *testing.T) {
	t.Parallel()
	dead, old, fargate := fleetsim.NodeName(1), fleetsim.NodeName(2), fleetsim.NodeName(3)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 10, Seed: 1, Churn: -1, Named: map[string][]fleetsim.Trait{
		dead: {fleetsim.Refused}, old: {fleetsim.Old}, fargate: {fleetsim.Fargate},
	}})
	admin := string(sim.Kubeconfig())
	token := admin[strings.LastIndex(admin, "  user:\n"):]
	kubeconfigs := map[string]string{
		"ADMIN":      admin,
		"NO_NODES":   string(sim.KubeconfigOf("visitor", "list nodes", "watch nodes")),
		"NO_FORWARD": string(sim.KubeconfigOf("reader", "* pods/portforward", "* pods/exec", "* pods/proxy")),
		"EXPIRED":    string(sim.KubeconfigExpired()),
		"NO_AWS":     strings.Replace(admin, token, "  user:\n    exec:\n      apiVersion: client.authentication.k8s.io/v1beta1\n      command: aws-of-nowhere\n      args: [eks, get-token]\n      interactiveMode: Never\n", 1),
		"AWAY":       strings.Replace(admin, sim.URL(), "https://127.0.0.1:1", 1),
	}
	dir := t.TempDir()
	for name, text := range kubeconfigs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/cluster",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for name := range kubeconfigs {
				env.Setenv(name, filepath.Join(dir, name))
			}
			env.Setenv("KUBECONFIG", filepath.Join(dir, "ADMIN"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("DEAD", dead)
			env.Setenv("OLD", old)
			env.Setenv("FARGATE", fargate)
			env.Setenv("NODE", fleetsim.NodeName(0))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}
