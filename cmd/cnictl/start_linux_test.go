package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cnictl/testenv/kube/fleetsim"
)

// refusal is the error printed instead of opening the screens, one line each.
type refusal struct{ what, why, try string }

// cannotStart starts the screens with a kubeconfig, by command and by default, and
// requires that they do not open and report why.
func cannotStart(t *testing.T, kubeconfig string, want refusal, flags ...string) {
	t.Helper()
	for _, command := range [][]string{{"tui"}, {}} {
		if len(command) == 0 && len(flags) > 0 {
			continue // flags need a command before them
		}
		x := onTerminal(t, 120, []string{"KUBECONFIG=" + kubeconfig}, append(command, flags...)...)
		code := x.end()
		lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(x.text(), "\r", "")), "\n")
		if code != 5 || strings.Contains(x.text(), alternateScreen) || len(lines) != 3 {
			t.Errorf("%v: exit %d, %d lines: %q", command, code, len(lines), x.text())
			continue
		}
		for i, text := range []string{"^cnictl: " + want.what + "$", "^  why: " + want.why, "^  try: " + want.try} {
			if !regexp.MustCompile(text).MatchString(lines[i]) {
				t.Errorf("%v: %q is not %s", command, lines[i], text)
			}
		}
	}
}

// TestTerminal_CannotStart: with an unusable kubeconfig, the tool prints an error and shows no
// empty screen.
func TestTerminal_CannotStart(t *testing.T) {
	t.Parallel()
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 2, Seed: 1, Churn: -1})
	admin := string(sim.Kubeconfig())
	const noRights = "the roles are in deploy/rbac/cnictl.yaml$"
	for name, tt := range map[string]struct {
		kubeconfig string
		flags      []string
		want       refusal
	}{
		"missing":  {want: refusal{"no cluster selected", "/.*/kubeconfig does not exist$", "aws eks update-kubeconfig"}},
		"no YAML":  {kubeconfig: "{", want: refusal{"kubeconfig .* cannot be used", ".", "kubectl config view"}},
		"expired":  {kubeconfig: string(sim.KubeconfigExpired()), want: refusal{"could not reach fleetsim", "the API server does not accept the credentials", "log in again"}},
		"away":     {kubeconfig: strings.Replace(admin, sim.URL(), "https://127.0.0.1:1", 1), want: refusal{"could not reach fleetsim", ".*refused$", "kubectl cluster-info"}},
		"no nodes": {kubeconfig: string(sim.KubeconfigOf("visitor", "list nodes", "watch nodes")), want: refusal{"could not list the nodes of fleetsim", "missing permissions: list nodes, watch nodes$", "kubectl auth can-i list nodes; " + noRights}},
		"no way":   {kubeconfig: string(sim.KubeconfigOf("reader", "* pods/portforward", "* pods/exec")), want: refusal{"could not read the nodes of fleetsim", "missing permission: create pods/portforward in namespace kube-system$", "kubectl auth can-i create pods --subresource=portforward -n kube-system; " + noRights}},
		"no way asked for": {
			kubeconfig: string(sim.KubeconfigOf("forwarder", "* pods/exec")), flags: []string{"--via=exec"},
			want: refusal{"could not read the nodes of fleetsim", "missing permission: create pods/exec in namespace kube-system$", "kubectl auth can-i create pods --subresource=exec -n kube-system; " + noRights},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if tt.kubeconfig != "" {
				if err := os.WriteFile(file, []byte(tt.kubeconfig), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cannotStart(t, file, tt.want, tt.flags...)
		})
	}
}

// TestTerminal_OpensWithoutForwarding: a user with exec rights in the daemons' pods can
// reach those that listen on a Unix socket.
func TestTerminal_OpensWithoutForwarding(t *testing.T) {
	t.Parallel()
	node := fleetsim.NodeName(0)
	sim := fleetsim.New(t, fleetsim.Options{Nodes: 1, Seed: 1, Churn: -1, Named: map[string][]fleetsim.Trait{node: {fleetsim.UnixSocket}}})
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, sim.KubeconfigOf("operator", "* pods/portforward"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := onTerminal(t, 120, []string{"KUBECONFIG=" + file})
	short, _, _ := strings.Cut(node, ".")
	x.await("the node", holds(short, 1))
	x.press("q")
	if code := x.end(); code != 0 {
		t.Errorf("exit %d", code)
	}
}
