//go:build nightly

package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"cnictl/daemon/fleet/document"
	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/node"
)

// ailment is a fault on the first node of the cluster.
type ailment struct {
	code   string
	frozen bool     // the daemon is stopped while the fault is caused, because it would repair it
	fleet  bool     // any node may show it
	with   []string // what else the doctor may find
	// begins causes the fault. pods run on the node, the first on a secondary interface.
	begins func(l *lab, m *cluster.Machine, pods []*corev1.Pod)
}

// What else a daemon shows that is stopped, and a new pod of aws-node that does not start.
var (
	ofStopped = []string{"boot/ipamd-down", "obs/daemon-not-ready"}
	ofNewPod  = []string{"boot/ipamd-down", "boot/daemon-missing", "obs/daemon-not-ready", "obs/daemon-silent"}
)

// policyEndpoints is the custom resource that the policy agent reads.
const policyEndpoints = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"policyendpoints.networking.k8s.aws"},` +
	`"spec":{"group":"networking.k8s.aws","scope":"Namespaced","names":{"kind":"PolicyEndpoint","plural":"policyendpoints"},"versions":[` +
	`{"name":"v1alpha1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`

// ailments are healed by the commands of their first fixes. Those of testenv/node/e2e's
// TestDoctor_Provoked need no kubectl.
var ailments = []ailment{
	{code: "net/rules-flushed", frozen: true, with: ofStopped, begins: func(l *lab, m *cluster.Machine, pods []*corev1.Pod) {
		l.on(m, "ip rule del priority 512 to "+pods[0].Status.PodIP)
	}},
	{code: "net/rules-flushed", frozen: true, with: ofStopped, begins: func(l *lab, m *cluster.Machine, pods []*corev1.Pod) {
		l.on(m, "ip route del "+pods[0].Status.PodIP)
	}},
	{code: "net/rules-flushed", frozen: true, with: ofStopped, begins: func(l *lab, m *cluster.Machine, pods []*corev1.Pod) {
		l.on(m, "ip route del default table "+l.table(m, pods[0]))
	}},
	{code: "boot/rollout", fleet: true, with: ofNewPod, begins: func(l *lab, _ *cluster.Machine, _ []*corev1.Pod) {
		l.kubectl("", "set", "image", "daemonset/aws-node", "aws-node=docker.io/cnictl/aws-vpc-cni:no-such-release")
	}},
	{code: "np/agent-failing", fleet: true, with: append(ofNewPod, "boot/rollout"), begins: func(l *lab, _ *cluster.Machine, _ []*corev1.Pod) {
		l.kubectl(policyEndpoints, "apply", "-f", "-") // without it, that would be why
		l.kubectl("", "patch", "daemonset", "aws-node", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"aws-eks-nodeagent",`+
			`"image":"docker.io/cnictl/cni-metrics-helper:dev","imagePullPolicy":"Never","args":["--no-such-flag"]}]}}}}`)
	}},
	{code: "net/veth-missing", begins: func(l *lab, m *cluster.Machine, pods []*corev1.Pod) {
		l.on(m, "ip link del $(ip -o route get "+pods[0].Status.PodIP+" | sed 's/.* dev \\([^ ]*\\).*/\\1/')")
	}},
}

// TestCnictl_Heals causes faults on a node of a real cluster. The doctor finds each and nothing
// else, the command of its first fix is run as it is printed, and then it finds nothing.
func TestCnictl_Heals(t *testing.T) {
	l := requireCluster(t)
	m := l.c.Machines[0]
	o := l.operator(execUser, "CNICTL_NODES="+m.Name)
	l.grantRoles(execUser, "cnictl", "cnictl-doctor", "cnictl-exec")
	// A daemon that is stopped stays so until the fix: kubelet would restart it.
	l.kubectl("", "patch", "daemonset", "aws-node", "--type=json", "-p", `[{"op":"remove","path":"/spec/template/spec/containers/0/livenessProbe"}]`)
	l.rolled()
	defer func() {
		l.kubectl(policyEndpoints, "delete", "--ignore-not-found", "-f", "-")
		l.helm("upgrade", cluster.Release, l.c.Chart(), "--reuse-values")
		l.rolled()
	}()
	for i, a := range ailments {
		t.Run(a.code, func(t *testing.T) {
			l := &lab{T: t, c: l.c}
			t.Cleanup(l.explain)
			o := operator{l, o.env}
			if a.fleet {
				o.env = append(slices.Clone(o.env), "CNICTL_NODES="+strings.Join(l.threeNodes(), ","))
			}
			pods := make([]*corev1.Pod, 12) // more than one interface has
			for j := range pods {
				pods[j] = pod(fmt.Sprintf("ill-%d-%d", i, j), m)
			}
			pods = l.run(pods...)
			slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(l.table(m, b), l.table(m, a)) })
			testenv.EventuallyErr(l, "a healthy node", func() error { _, err := o.found(m, ailment{}); return err })
			if a.frozen {
				pid, err := m.Process(node.DaemonBinary)
				l.check(err)
				l.check(syscall.Kill(pid, syscall.SIGSTOP))
			}
			a.begins(l, m, pods)
			var fix document.CauseFix
			testenv.EventuallyErr(l, "the doctor to find "+a.code, func() (err error) { fix, err = o.found(m, a); return err })
			l.Logf("%s\n%s", fix.Text, fix.Command)
			l.asPrinted(m, fix.Command)
			testenv.EventuallyErr(l, "a healthy node", func() error { _, err := o.found(m, ailment{}); return err })
		})
	}
}

// table returns the number of the routing table that a pod's traffic takes, "" for main.
func (l *lab) table(m *cluster.Machine, p *corev1.Pod) string {
	return strings.TrimSpace(l.on(m, "ip rule | sed -n 's/.*from "+p.Status.PodIP+" lookup \\([0-9]*\\).*/\\1/p'"))
}

// on runs a script on a node.
func (l *lab) on(m *cluster.Machine, script string) string {
	l.Helper()
	out, err := m.Output("/bin/sh", "-ec", "PATH=/usr/sbin:/usr/bin:/sbin:/bin\n"+script)
	l.check(err)
	return out
}

// asPrinted runs a command of a fix: kubectl as an administrator, others on the node.
func (l *lab) asPrinted(m *cluster.Machine, command string) {
	l.Helper()
	if !strings.HasPrefix(command, "kubectl ") {
		l.on(m, command)
		return
	}
	programs, err := kubeapi.ProgramDir()
	l.check(err)
	cmd := exec.CommandContext(l.Context(), "/bin/sh", "-c", command)
	cmd.Env = []string{"PATH=" + programs + ":" + os.Getenv("CNI_TEST_BIN") + ":/usr/bin:/bin", "KUBECONFIG=" + l.c.Kubeconfig, "HOME=" + l.TempDir()}
	e, err := finished(cmd)
	l.check(err)
	if e.code != 0 {
		l.Fatalf("%s: exit %d: %s", command, e.code, e.said)
	}
}

// found returns the first fix of the only problem that the doctor sees, or says what else it sees.
func (o operator) found(m *cluster.Machine, a ailment) (fix document.CauseFix, _ error) {
	args := []string{"doctor", "--via", "exec", "--once", "-o", "json"}
	if !a.fleet {
		args = append(args, m.Name)
	}
	e := o.run(args...)
	var r document.DoctorReport
	if err := json.Unmarshal([]byte(e.out), &r); err != nil {
		return fix, fmt.Errorf("exit %d: %w: %s", e.code, err, e.said)
	}
	others, seen := "", a.code == ""
	for _, f := range r.Findings {
		switch {
		case f.Code == a.code:
			fix = f.Fix[0]
			seen = !strings.Contains(fix.Command, " get ") // else it says what to look at, as long as no container fails
		case f.Severity != "info" && !slices.Contains(a.with, f.Code) && !node.OfMachine(f.Code):
			others += fmt.Sprintf("%s %s %s: %s\n", f.Code, f.Severity, f.Confidence, f.Summary)
		}
	}
	if !seen || others != "" {
		return fix, fmt.Errorf("exit %d, %s is found: %v, and also: %s%s", e.code, a.code, seen, others, e.said)
	}
	return fix, nil
}
