package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/doctor/evidence"
	doctorbundle "cnictl/doctor/evidence/bundle"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// bundle is an archive written by aws-cni-support.sh.
type bundle struct {
	t     *testing.T
	path  string
	files map[string]string // by name, without the archive's top directory
}

// support runs aws-cni-support.sh on a node and returns its result.
func (l *lab) support(n *node.Node, path string, args ...string) agent.Result {
	l.t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "..", "deploy", "images", "aws-cni-support.sh"))
	if err != nil {
		l.t.Fatal(err)
	}
	r, err := n.Exec(agent.Cmd{Argv: append([]string{"/bin/sh", script}, args...), Env: []string{"PATH=" + path}})
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// collect runs support and reads the archive.
func (l *lab) collect(n *node.Node, path string, args ...string) bundle {
	l.t.Helper()
	dir := l.t.TempDir()
	r := l.support(n, path, append([]string{"-o", dir}, args...)...)
	if r.Code != 0 || len(r.Stderr) > 0 {
		l.t.Fatalf("exit status %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	b := bundle{t: l.t, path: strings.TrimSpace(string(r.Stdout)), files: map[string]string{}}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || filepath.Join(dir, entries[0].Name()) != b.path {
		l.t.Fatalf("%v beside %s, error %v", entries, b.path, err)
	}
	if info, err := entries[0].Info(); err != nil || info.Mode() != 0o600 {
		l.t.Errorf("%s: %v, %v", b.path, info.Mode(), err)
	}
	b.unpack()
	return b
}

func (b bundle) unpack() {
	b.t.Helper()
	file, err := os.Open(b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		b.t.Fatal(err)
	}
	top := strings.TrimSuffix(filepath.Base(b.path), ".tar.gz") + "/"
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			b.t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, top)
		if !ok || h.Mode&0o077 != 0 || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
			b.t.Errorf("%s: type %c, mode %o, not below %s", h.Name, h.Typeflag, h.Mode, top)
		}
		if h.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			if err != nil {
				b.t.Fatal(err)
			}
			b.files[name] = string(text)
		}
	}
}

// status returns what the manifest says about a file.
func (b bundle) status(name string) string {
	for line := range strings.Lines(b.files["MANIFEST"]) {
		if file, status, _ := strings.Cut(strings.TrimSpace(line), "\t"); file == name {
			return status
		}
	}
	return ""
}

func (b bundle) contains(name string, texts ...string) {
	b.t.Helper()
	if got := b.status(name); got != "ok" {
		b.t.Errorf("%s: status %q", name, got)
	}
	for _, text := range texts {
		if !strings.Contains(b.files[name], text) {
			b.t.Errorf("%s has no %q:\n%.2000s", name, text, b.files[name])
		}
	}
}

// root creates a root directory that has a node's files in their usual places.
func (l *lab) root(places map[string]string) string {
	l.t.Helper()
	root := l.t.TempDir()
	for name, target := range places {
		path := filepath.Join(root, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.Symlink(target, path)
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
	return root
}

// TestSupport: the archive of a node with pods has what docs/support-bundle.md lists, equals the
// sources, and has no credentials.
func TestSupport(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	n := l.boot("m5.large", nil)
	pod, err := n.AddPod(node.PodSpec{Namespace: "shop", Name: "cart-1"})
	if err != nil {
		t.Fatal(err)
	}
	const secret = "wJalrXUtnFEMIbPxRfiCY"
	logs := filepath.Join(n.Dir, "log")
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprintf(z, "rotated line\n{\"msg\":\"request\",\"headers\":\"{\\\"Authorization\\\":\\\"Bearer %s\\\"}\"}\n", secret)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	l.write(filepath.Join(logs, "ipamd-2026-01-02.log.gz"), packed.String(), 0o600)
	l.write(filepath.Join(logs, "odd.log"), "AWS_SECRET_ACCESS_KEY="+secret+" kept\nX-Aws-Ec2-Metadata-Token: "+secret+"\n\"SessionToken\": \""+secret+" more\"\nhttps://user:"+secret+"@proxy:3128\n", 0o600)
	conf := filepath.Join(n.Dir, "cni-net.d")
	root := l.root(map[string]string{"var/log/aws-routed-eni": logs, "etc/cni/net.d": conf, "opt/cni/bin": l.binaries, "run/aws-node": "/run/aws-node"})
	l.write(filepath.Join(conf, "10-aws.conflist"), `{"name":"aws-cni","plugins":[]}`, 0o644)
	l.write(filepath.Join(conf, "other.kubeconfig"), "token: "+secret, 0o600)

	b := l.collect(n, os.Getenv("PATH"), "-r", root)
	if !strings.HasPrefix(filepath.Base(b.path), "aws-cni-support_"+n.InstanceID+"_") {
		t.Errorf("the archive is called %s", b.path)
	}
	if !strings.HasPrefix(b.files["MANIFEST"], "layout\t1\ncollected\t") {
		t.Errorf("MANIFEST begins %.100q", b.files["MANIFEST"])
	}
	b.contains("system/instance-id.txt", n.InstanceID)
	b.contains("system/mac.txt", n.Primary.MAC)
	b.contains("ipamd/enis.json", n.Primary.ID, pod.IP.String())
	b.contains("ipamd/summary.json", n.InstanceID)
	b.contains("ipamd/metrics.txt", "awscni_build_info")
	b.contains("ipamd/ipam.json", `"k8sPodName":"cart-1"`)
	b.contains("ipamd/var-run-aws-node.txt", "ipamd.sock")
	b.contains("var_log/aws-routed-eni/ipamd.log", `"level":"`)
	b.contains("var_log/aws-routed-eni/ipamd-2026-01-02.log", "rotated line\n", `\"Authorization\":\"[scrubbed]\"`)
	b.contains("var_log/aws-routed-eni/odd.log", "AWS_SECRET_ACCESS_KEY=[scrubbed] kept\nX-Aws-Ec2-Metadata-Token: [scrubbed]\n\"SessionToken\": \"[scrubbed]\"\nhttps://[scrubbed]@proxy:3128\n")
	b.contains("cni/10-aws.conflist", `"aws-cni"`)
	b.contains("cni/etc-cni-net.d.txt", "other.kubeconfig")
	b.contains("networking/iprule.txt", "from all to "+pod.IP.String()+" lookup main")
	b.contains("networking/ip6rule.txt", "lookup local")
	b.contains("networking/iproute.txt", pod.IP.String()+" dev eni", "table 2")
	b.contains("networking/ip6route.txt")
	b.contains("networking/ipaddr.txt", n.Link)
	b.contains("networking/iplink.txt", "veth")
	b.contains("networking/ipneigh.txt")
	b.contains("networking/iptables-save.txt", "AWS-SNAT-CHAIN-0")
	b.contains("networking/iptables-nft-save.txt", "AWS-SNAT-CHAIN-0")
	b.contains("networking/ip6tables-save.txt")
	b.contains("networking/nft.txt", "table ip aws-cni")
	b.contains("sysctls/net.txt", "/proc/sys/net/ipv4/conf/"+n.Link+"/rp_filter:")
	for name, text := range b.files {
		for _, never := range []string{secret, "stable_secret", "fastopen_key"} {
			if strings.Contains(text, never) {
				t.Errorf("%s holds %s:\n%.1000s", name, never, text)
			}
		}
		if b.status(name) == "" && name != "MANIFEST" {
			t.Errorf("MANIFEST does not name %s", name)
		}
	}
	if _, there := b.files["cni/other.kubeconfig"]; there {
		t.Error("a kubeconfig is in the archive")
	}
	b.diagnosable(n, "shop/cart-1")
}

// diagnosable checks that the doctor can read the archive, and finds the pod in all of its files.
func (b bundle) diagnosable(n *node.Node, pod evidence.Pod) {
	b.t.Helper()
	file, err := os.Open(b.path)
	if err != nil {
		b.t.Fatal(err)
	}
	defer file.Close()
	ev, notes, err := doctorbundle.Read(file, filepath.Base(b.path))
	if err != nil || len(notes) > 0 || len(ev.Nodes) != 1 {
		b.t.Fatalf("the doctor reads %v, %q, %v", ev, notes, err)
	}
	r := ev.Nodes[0].First
	for id, missing := range map[string]string{
		"intro.enis": r.ENIs.Missing, "intro.env": r.Env.Missing, "intro.summary": r.Summary.Missing, "intro.plan": r.Plan.Missing, "intro.events": r.Journal.Missing, "metrics": r.Metrics.Missing,
		"ckpt": r.Checkpoint.Missing, "log.ipamd": r.LogIPAMD.Missing, "kern.link": r.Links.Missing, "kern.rule": r.Rules.Missing, "kern.route": r.Routes.Missing, "kern.ipt": r.IPTables.Missing,
		"kern.sysctl": r.Sysctls.Missing, "host.cni": r.CNI.Missing, "host.run": r.RunFiles.Missing, "ec2.type": r.InstanceType.Missing,
	} {
		if missing != "" {
			b.t.Errorf("%s: %s", id, missing)
		}
	}
	if name := ev.Nodes[0].Name; name != r.Summary.Content.Node || ev.At.IsZero() {
		b.t.Errorf("node %q at %v", name, ev.At)
	}
	if !slices.ContainsFunc(r.Links.Content, func(l evidence.Link) bool { return l.Pod == pod && l.Kind == "veth" && *l.Up }) ||
		!slices.ContainsFunc(r.Routes.Content, func(x evidence.Route) bool { return x.Pod == pod }) || !slices.ContainsFunc(r.Checkpoint.Content.Allocations, func(a evidence.Allocation) bool { return a.Pod == pod }) {
		b.t.Errorf("%s is not in %+v, %+v, %+v", pod, r.Links.Content, r.Routes.Content, r.Checkpoint.Content)
	}
	if to := r.IPTables.Content.SNATTo; to == nil || !slices.Contains(r.IPTables.Content.NFTTables, "ip aws-cni") || *r.InstanceType.Content.MaxENIs != 3 {
		b.t.Errorf("SNAT to %v, tables %v, type %+v", to, r.IPTables.Content.NFTTables, r.InstanceType.Content)
	}
}

// base are the programs that the script requires.
var base = []string{"cat", "date", "gzip", "id", "ln", "ls", "mkdir", "mv", "rm", "sed", "sleep", "tail", "tar"}

// programs creates a directory of links to programs.
func programs(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(path, filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSupport_FewPrograms: on a node without a daemon and with few programs, the archive says
// what is missing; only the node's identity is read from the metadata service; and the node
// is unchanged.
func TestSupport_FewPrograms(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	asked := []string{
		"GET /latest/meta-data/instance-id 200", "GET /latest/meta-data/instance-type 200", "GET /latest/meta-data/local-ipv4 200", "GET /latest/meta-data/mac 200",
		"GET /latest/meta-data/placement/availability-zone 200", "GET /latest/meta-data/placement/region 200", "PUT token",
	}
	for name, row := range map[string]struct {
		more  []string
		asked []string
	}{
		"bash": {[]string{"bash", "timeout"}, asked},
		"curl": {[]string{"curl"}, asked},
		"none": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			here := *l
			here.t = t
			before := state(t, n)
			l.world.ResetCalls()
			b := here.collect(n, programs(t, append(row.more, base...)...))
			var got []string
			for _, c := range l.world.IMDSCalls() {
				if c.Method == "PUT" {
					got = append(got, "PUT token")
					continue
				}
				got = append(got, fmt.Sprintf("%s %s %d", c.Method, c.Path, c.Status))
			}
			slices.Sort(got)
			if d := cmp.Diff(row.asked, got); d != "" {
				t.Errorf("asked of the metadata service (-want +got):\n%s", d)
			}
			if d := cmp.Diff(before, state(t, n)); d != "" {
				t.Errorf("the node changed (-before +after):\n%s", d)
			}
			if row.asked != nil {
				b.contains("system/instance-id.txt", n.InstanceID)
				b.contains("system/region.txt", "us-")
			} else if got := b.status("system/instance-id.txt") + ", " + b.status("ipamd/enis.json"); got != "no program curl or bash, no program curl, wget or bash" {
				t.Errorf("status %q", got)
			}
			if got := b.status("ipamd/enis.json"); got == "ok" || got == "" {
				t.Errorf("the answer of no daemon: %q", got)
			}
			if got := b.status("kubelet/kubelet.log"); got != "no program journalctl" {
				t.Errorf("kubelet's log without journalctl: %q", got)
			}
		})
	}
}

// state returns what must not change on an idle node.
func state(t *testing.T, n *node.Node) node.KernelState {
	t.Helper()
	s, err := n.KernelState()
	if err != nil {
		t.Fatal(err)
	}
	s.IPTables = "" // its comments contain the time; nft shows the same rules
	for _, text := range []*string{&s.Routes, &s.Links} {
		var kept strings.Builder
		for line := range strings.Lines(*text) {
			if !strings.Contains(line, "fe80::") { // added late by the kernel itself
				kept.WriteString(line)
			}
		}
		*text = kept.String()
	}
	return s
}
