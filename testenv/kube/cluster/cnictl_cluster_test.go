package cluster_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"cnictl/daemon/fleet/document"
	"cnictl/deploy"
	"cnictl/testenv"
	"cnictl/testenv/kube/cluster"
	"cnictl/testenv/kube/kubeapi"
	"cnictl/testenv/node"
	"cnictl/testenv/text/terminal"
)

// operator runs the built cnictl as a user of the cluster.
type operator struct {
	*lab
	env []string
}

// operator is a user with the name's rights. It looks only at the nodes that every test
// has.
func (l *lab) operator(user string, env ...string) operator {
	l.Helper()
	config, err := clientcmd.LoadFromFile(l.c.Kubeconfig)
	l.check(err)
	for _, who := range config.AuthInfos {
		who.Impersonate = user
	}
	home := l.TempDir()
	file := filepath.Join(home, "kubeconfig")
	l.check(clientcmd.WriteToFile(*config, file))
	programs, err := kubeapi.ProgramDir()
	l.check(err)
	return operator{l, append([]string{
		"PATH=" + os.Getenv("CNI_TEST_BIN") + ":" + programs + ":/usr/bin:/bin", "HOME=" + home, "TERM=xterm-256color", "LANG=C.UTF-8",
		"KUBECONFIG=" + file, "CNICTL_NODES=" + strings.Join(l.threeNodes(), ","),
	}, env...)}
}

func (o operator) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(o.Context(), filepath.Join(os.Getenv("CNI_TEST_BIN"), program), args...)
	cmd.Env = o.env
	return cmd
}

// commandResult holds the output of a command and its exit code.
type commandResult struct {
	out, said string
	code      int
}

func (o operator) finish(cmd *exec.Cmd) commandResult {
	o.Helper()
	e, err := finished(cmd)
	o.check(err)
	return e
}

// finished runs a command to its end, even if it fails.
func finished(cmd *exec.Cmd) (commandResult, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return commandResult{}, err
	}
	return commandResult{out.String(), said.String(), cmd.ProcessState.ExitCode()}, nil
}

// runAll runs commands, at most atOnce at a time.
func (o operator) runAll(atOnce int, commands []string) map[string]commandResult {
	o.Helper()
	out := make([]commandResult, len(commands))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, c := range commands {
		cmd := o.command("cnictl", strings.Fields(c)...)
		group.Go(func() (err error) { out[i], err = finished(cmd); return err })
	}
	o.check(group.Wait())
	by := map[string]commandResult{}
	for i, c := range commands {
		by[c] = out[i]
	}
	return by
}

func (o operator) run(args ...string) commandResult {
	o.Helper()
	return o.finish(o.command("cnictl", args...))
}

// expect runs a command and looks for patterns in its output.
func (o operator) expect(code int, command string, patterns ...string) {
	o.Helper()
	o.holds(o.run(strings.Fields(command)...), code, command, patterns...)
}

func (o operator) holds(e commandResult, code int, command string, patterns ...string) {
	o.Helper()
	if e.code != code {
		o.Errorf("%s: exit %d, want %d: %s%s", command, e.code, code, e.out, e.said)
		return
	}
	for _, p := range patterns {
		if !regexp.MustCompile(`(?m)` + p).MatchString(e.out + e.said) {
			o.Errorf("%s: no %q in\n%s%s", command, p, e.out, e.said)
		}
	}
}

// TestCnictl_Commands runs the built tool through the API server and real kubelets, with
// only the rights of deploy/rbac/cnictl.yaml.
func TestCnictl_Commands(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	m := l.c.Machines[0]
	p := l.run(pod("seen-by-cnictl", m))[0]
	node, eni, ip := regexp.QuoteMeta(m.Name), m.Primary.ID, regexp.QuoteMeta(p.Status.PodIP)
	var all []string
	for _, name := range l.threeNodes() {
		all = append(all, regexp.QuoteMeta(name))
	}
	o := l.operator(readerUser)
	runs := map[string][]string{
		"nodes":                            all,
		"nodes -o wide":                    all,
		"nodes -o json":                    {`"state": "live"`, `"via": "port-forward"`, `"partial": false`},
		"status":                           {`(?i)nodes`},
		"node " + m.Name:                   {"^NODE " + node},
		"node enis " + m.Name:              {eni},
		"node ips " + m.Name:               {ip},
		"node pods " + m.Name:              {p.Name},
		"node config " + m.Name:            {`^WARM_ENI_TARGET`},
		"node plan " + m.Name + " -o json": {`"kind": "NodePlan"`},
		"node metrics " + m.Name:           {`awscni_total_ip_addresses`},
		"pod " + namespace + "/" + p.Name:  {ip, node},
		"enis":                             {eni},
		"ips --ip " + p.Status.PodIP:       {p.Name, node},
		"logs " + m.Name + " --tail 5":     {`.`},
		"events":                           {``},
		"top":                              all,
	}
	// A command spends most of its time waiting: for a tunnel to start, for the second
	// reading of a rate.
	ended := o.runAll(4, slices.Sorted(maps.Keys(runs)))
	for command, patterns := range runs {
		o.holds(ended[command], 0, command, patterns...)
	}
	o.holds(o.finish(o.command("kubectl-cni", "nodes")), 0, "kubectl-cni nodes", all...)
	kubectl, err := kubeapi.ProgramDir()
	l.check(err)
	cmd := o.command("cnictl", "cni", "nodes")
	cmd.Path, cmd.Args[0] = filepath.Join(kubectl, "kubectl"), "kubectl"
	o.holds(o.finish(cmd), 0, "kubectl cni nodes", all...)
}

// TestCnictl_SPDY: a user who may only create port-forwards is served over the older protocol.
func TestCnictl_SPDY(t *testing.T) {
	l := requireCluster(t)
	objects, err := deploy.RBAC("cnictl")
	l.check(err)
	const user = "somebody-with-spdy"
	for _, o := range objects {
		o.SetName("cnictl-spdy")
		rules, _ := o.Object["rules"].([]any)
		for _, r := range rules {
			rule, _ := r.(map[string]any)
			if resources, _ := rule["resources"].([]any); slices.Contains(resources, any("pods/portforward")) {
				rule["verbs"] = []any{"create"}
			}
		}
		l.grant(o, user)
	}
	l.operator(user).expect(0, "nodes -o json", `"state": "live"`, `"via": "port-forward"`, `"partial": false`)
}

// TestCnictl_Refusals: three lines name the missing permission; everything readable is printed.
func TestCnictl_Refusals(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	l.operator("unprivileged").expect(5, "nodes", `^cnictl: could not list the nodes of cluster$`, `^  why: missing permission: list (nodes|pods)`, `^  try: kubectl auth can-i list `)
	without := l.c.Machines[1]
	gone := without.Name
	l.withoutDaemon(without)
	o := l.operator(readerUser)
	o.expect(4, "nodes", regexp.QuoteMeta(gone)+` .*(?i)no.daemon`, `^warning: 1 of 3 nodes could not be fully read`)
	o.expect(0, "nodes --allow-partial")
	o.expect(5, "nodes "+gone, `^cnictl: node `+regexp.QuoteMeta(gone)+` could not be read$`)
	o.expect(6, "nodes nope", `node nope not found`)
}

// withoutDaemon deletes the CNI's pod on a node and keeps its successor from being scheduled
// until the test ends.
func (l *lab) withoutDaemon(m *cluster.Machine) {
	l.Helper()
	scheduler := func(s unix.Signal) error {
		pid, err := cluster.Process("kube-scheduler", nil)
		if err != nil {
			return err
		}
		return unix.Kill(pid, s)
	}
	p, err := m.CNIPod(l.Context())
	l.check(err)
	l.check(scheduler(unix.SIGSTOP))
	l.Cleanup(func() {
		ctx := context.WithoutCancel(l.Context())
		if err := errors.Join(scheduler(unix.SIGCONT), m.AwaitCNI(ctx)); err != nil {
			l.Error(err)
		}
	})
	l.check(cluster.Delete[corev1.Pod](l.Context(), l.c, cluster.SystemNamespace, p.Name))
	testenv.EventuallyErr(l, "the CNI's pod to be gone", func() error {
		if p, err := m.CNIPod(l.Context()); err == nil {
			return errors.New(p.Name + " is there")
		}
		return nil
	})
}

// TestCnictl_Watches: a watch shows every node, and ends with success when interrupted.
func TestCnictl_Watches(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	cmd := l.operator(readerUser).command("cnictl", "nodes", "-w", "--interval", "2s")
	out, err := cmd.StdoutPipe()
	l.check(err)
	l.check(cmd.Start())
	seen := map[string]bool{}
	for lines := bufio.NewScanner(out); len(seen) < 3 && lines.Scan(); {
		if name, _, _ := strings.Cut(lines.Text(), " "); slices.ContainsFunc(l.threeNodes(), func(n string) bool { return strings.HasPrefix(n, name) }) {
			seen[name] = true
		}
	}
	l.check(cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil || len(seen) != 3 {
		t.Errorf("%v after %v", err, seen)
	}
}

// execUser may run commands in the daemon's container.
const execUser = "somebody-with-exec"

// readsByExec reads a daemon on a Unix socket by running the image's own cnictl in
// aws-node, through a real kubelet, with the role for exec.
func (l *lab) readsByExec(m *cluster.Machine) {
	l.Helper()
	o := l.operator(execUser, "CNICTL_NODES="+m.Name, "CNICTL_NODE_TIMEOUT=30s") // exec is slow on a busy machine
	for _, via := range []string{"exec", "auto"} {
		o.expect(0, "nodes -o json --via "+via, `"state": "live"`, `"via": "exec"`)
	}
	o.expect(0, "node enis "+m.Name+" --via exec", m.Primary.ID)
	// Port-forward needs a TCP port.
	o.expect(4, "nodes --via port-forward", `metrics-only: `, `^warning: only the metrics of `+regexp.QuoteMeta(m.Name)+` could be read: .* Unix socket.*--via exec, or cnictl local on the node$`)
}

// TestCnictl_Doctor examines a node from outside the cluster, with the rights that deploy/rbac
// grants. It finds no problem, and reads what only the node sees through a command in the
// container. Without the right to exec, the doctor reports what it was denied.
func TestCnictl_Doctor(t *testing.T) {
	l := requireCluster(t)
	m := l.c.Machines[0]
	o := l.operator(execUser, "CNICTL_NODES="+m.Name)
	examined := func(code int, kernel map[string]string) error {
		e := o.run("doctor", m.Name, "--via", "exec", "--once", "-o", "json")
		var r document.DoctorReport
		if err := json.Unmarshal([]byte(e.out), &r); err != nil {
			return fmt.Errorf("exit %d: %w: %s", e.code, err, e.said)
		}
		unread := map[string]string{}
		for _, s := range r.NotChecked {
			if slices.Contains(onlyOnNode, s.Source) {
				unread[s.Source] = s.Reason
			}
		}
		r.Findings = slices.DeleteFunc(r.Findings, func(f document.Finding) bool { return node.OfMachine(f.Code) })
		if e.code != code || len(r.Findings) != 0 || !maps.Equal(unread, kernel) {
			return fmt.Errorf("exit %d, want %d, and unread %v, want %v: %s%s", e.code, code, unread, kernel, e.out, e.said)
		}
		return nil
	}
	l.grantRoles(execUser, "cnictl", "cnictl-doctor")
	denied := map[string]string{}
	for _, s := range onlyOnNode {
		denied[s] = "exec: forbidden"
	}
	l.check(examined(0, denied))
	l.grantRoles(execUser, "cnictl-exec")
	l.run(pod("examined", m)) // so that the plugin's log has its ADD
	testenv.EventuallyErr(l, "the doctor to read the node", func() error { return examined(0, nil) })
}

// onlyOnNode are sources that the DaemonSet's container sees but the API server does not.
var onlyOnNode = []string{
	"imds", "ckpt", "log.plugin", "kern.link", "kern.rule", "kern.route", "kern.ipt", "kern.sysctl", "host.cni", "host.listen", "host.res",
}

// TestCnictl_Screens opens the screens of a real cluster on a terminal: all nodes have
// rows, Enter opens and reads a node, q quits.
func TestCnictl_Screens(t *testing.T) {
	l := requireCluster(t)
	l.grantReader()
	o := l.operator(readerUser)
	x, err := terminal.Start(t.Context(), terminal.Options{Columns: 120, Rows: 40, Env: o.env, Keep: true}, filepath.Join(os.Getenv("CNI_TEST_BIN"), "cnictl"), "tui")
	l.check(err)
	defer x.Kill()
	shows := func(texts ...string) func(*terminal.Screen) bool {
		return func(s *terminal.Screen) bool {
			return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(s.String(), text) })
		}
	}
	var rows []string
	for _, name := range l.threeNodes() {
		short, _, _ := strings.Cut(name, ".")
		rows = append(rows, short)
	}
	l.check(x.Await(testenv.Context(t), 0, shows(rows...)))
	_, err = x.Expect(testenv.Context(t), "\r", 0, shows("eni-")) // only its daemon reports ENIs
	l.check(err)
	_, err = x.Expect(testenv.Context(t), "h", 0, shows(rows...))
	l.check(err)
	l.check(x.Press("q"))
	if code, err := x.Ended(testenv.Context(t)); code != 0 || err != nil || !strings.Contains(x.Drawn(), "\x1b[?1049l") {
		t.Errorf("exit %d, %v", code, err)
	}
}
