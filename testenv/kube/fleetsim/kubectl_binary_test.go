package fleetsim

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/testenv"
	"cnictl/testenv/kube/kubeapi"
)

// kubectl is the stock kubectl, configured for the fleet.
type kubectl struct {
	program, dir, kubeconfig string
}

func newKubectl(t *testing.T, s *Sim) kubectl {
	t.Helper()
	dir, err := kubeapi.ProgramDir()
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath(filepath.Join(dir, "kubectl"))
	if err != nil {
		testenv.Missing(t, "kube", err.Error(), "make kube-cluster")
	}
	home := t.TempDir()
	path, err := s.WriteKubeconfig(home)
	if err != nil {
		t.Fatal(err)
	}
	return kubectl{program, home, path}
}

func (k kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "HOME="+k.dir)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (k kubectl) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := k.command(t.Context(), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// lines starts kubectl and returns the lines it prints until the test ends.
func (k kubectl) lines(t *testing.T, args ...string) *bufio.Scanner {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cmd := k.command(ctx, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // the context killed it
	})
	return bufio.NewScanner(out)
}

// TestKubectl: stock kubectl prints the same as for a real cluster.
func TestKubectl(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := New(t, Options{Nodes: 1200, Seed: 1, UpstreamShare: 0.3, Churn: time.Second, Now: c.Now})
	k := newKubectl(t, s)
	for _, n := range s.nodes[:100] {
		n.withWorld(func(*world) {})
	}
	c.add(20 * time.Minute)
	for _, n := range s.nodes[:100] { // pods without an address cause events
		n.withWorld(func(*world) {})
	}
	pod := s.Nodes()[0].Pod
	for _, tt := range []struct {
		args  string
		lines int // at least
		match string
	}{
		{"get nodes", 1201, `(?m)^NAME +STATUS +ROLES +AGE +VERSION\s*\nip-10-\d+-\d+-\d+\.eu-west-1\.compute\.internal +Ready +<none> +\S+ +v1\.35`},
		{"get nodes -o wide", 1201, `INTERNAL-IP +EXTERNAL-IP +OS-IMAGE`},
		{"get nodes -l topology.kubernetes.io/zone=eu-west-1a --no-headers", 400, `^ip-`},
		{"get pods -n kube-system -o wide", 1201, `(?m)^NAME +READY .*\naws-node-\S+ +1/1 +Running +0 +\S+ +10\.\S+ +ip-10-`},
		{"get pods -n kube-system -l k8s-app=aws-node -o name", 1200, `^pod/aws-node-`},
		{"get ds -n kube-system aws-node", 2, `aws-node +1200 +1200 +1200`},
		{"get events -A", 2, `FailedCreatePodSandBox +pod/.*failed to assign an IP address`},
		{"get ns,cm,eniconfigs,cninodes -A", 10, `cninode\.vpcresources\.k8s\.aws/ip-`},
		{"auth can-i create pods --subresource=portforward -n kube-system", 1, `^yes\n`},
		{"logs -n kube-system " + pod + " --tail 2", 1, `"msg":"`},
		{"api-resources", 8, `(?m)^securitygrouppolicies +sgp +vpcresources\.k8s\.aws/v1beta1 +true +SecurityGroupPolicy`},
		{"version", 2, `Server Version: v1\.35`},
		{"get pod -n kube-system " + pod + " -o jsonpath={.spec.containers[0].image}", 1, `amazon-k8s-cni:`},
	} {
		out := k.run(t, strings.Fields(tt.args)...)
		if n := strings.Count(strings.TrimSuffix(out, "\n")+"\n", "\n"); n < tt.lines || !regexp.MustCompile(tt.match).MatchString(out) {
			t.Errorf("kubectl %s: %d lines\n%.800s", tt.args, n, out)
		}
	}
}

// TestKubectl_Watches follows nodes that join and leave.
func TestKubectl_Watches(t *testing.T) {
	t.Parallel()
	s := New(t, Options{Nodes: 3, Named: map[string][]Trait{NodeName(0): {Flapping}}})
	lines := newKubectl(t, s).lines(t, "get", "nodes", "-w")
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), NodeName(2)) {
			break
		}
	}
	go func() {
		for range 2 {
			s.byName[NodeName(1)].toggle(s.now())
		}
	}()
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), NodeName(1)) {
			return
		}
	}
	t.Error("kubectl saw no change")
}

var forwards = regexp.MustCompile(`Forwarding from (127\.0\.0\.1:\d+) -> 61679`)

// TestKubectl_PortForward reads a node as a user would, with both of kubectl's protocols.
func TestKubectl_PortForward(t *testing.T) {
	t.Parallel()
	s := New(t, Options{Nodes: 2})
	for _, websocket := range []string{"true", "false"} {
		t.Run("websocket "+websocket, func(t *testing.T) {
			t.Parallel()
			t.Logf("KUBECTL_PORT_FORWARD_WEBSOCKETS=%s", websocket)
			n := s.Nodes()[1]
			k := newKubectl(t, s)
			k.program = "/usr/bin/env"
			dir, err := kubeapi.ProgramDir()
			if err != nil {
				t.Fatal(err)
			}
			lines := k.lines(t, "KUBECTL_PORT_FORWARD_WEBSOCKETS="+websocket, filepath.Join(dir, "kubectl"), "port-forward", "-n", "kube-system", "pod/"+n.Pod, ":61679")
			address := ""
			for address == "" && lines.Scan() {
				if m := forwards.FindStringSubmatch(lines.Text()); m != nil {
					address = m[1]
				}
			}
			go func() {
				for lines.Scan() { // it writes a line for each connection
				}
			}()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+introspect.PathSummary, nil)
			if err != nil {
				t.Fatal(err)
			}
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var sum introspect.Summary
			if err := json.NewDecoder(resp.Body).Decode(&sum); err != nil || sum.Node != n.Name {
				t.Errorf("summary of %q, %v", sum.Node, err)
			}
		})
	}
}
