package fleetsim

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

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
