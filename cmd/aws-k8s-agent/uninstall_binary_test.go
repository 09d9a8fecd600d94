package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/testenv"
	"cnictl/testenv/network/netns"
)

//testlayers:uses=cmd/aws-k8s-agent
func TestMain(m *testing.M) { testenv.Main(m) }

// host is a node that a daemon once set up and where no daemon runs now.
type host struct {
	t            *testing.T
	bin          string
	ns           *netns.NS
	conf, plugin string
	before       string // state before the daemon ran
}

func newHost(t *testing.T) *host {
	t.Helper()
	testenv.RequireKernel(t, "veth", "iptables", "nft")
	dir := os.Getenv("CNI_TEST_BIN")
	if dir == "" {
		dir = filepath.Join("..", "..", "bin")
	}
	bin, err := filepath.Abs(filepath.Join(dir, "aws-k8s-agent"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(bin); err != nil {
		t.Fatalf("built binaries are missing; run: make build: %v", err)
	}
	h := &host{t: t, bin: bin, ns: netns.New(t), conf: t.TempDir(), plugin: t.TempDir()}
	h.sh(`ip link add eth0 type veth peer name far0; ip addr add 10.0.0.10/18 dev eth0; ip link set far0 up; ip link set eth0 up
ip route add default via 10.0.0.1; iptables-nft -t nat -A POSTROUTING -s 10.9.9.0/24 -j MASQUERADE`)
	h.before = h.state()
	h.sh(`iptables-nft -t nat -N AWS-SNAT-CHAIN-0; iptables-nft -t nat -A AWS-SNAT-CHAIN-0 -d 10.0.0.0/16 -m comment --comment 'AWS SNAT CHAIN' -j RETURN
iptables-nft -t nat -A POSTROUTING -m comment --comment 'AWS SNAT CHAIN' -j AWS-SNAT-CHAIN-0
nft add table ip aws-cni; ip rule add priority 1024 fwmark 0x80/0x80 lookup main`)
	for _, path := range h.ours() {
		h.write(path)
	}
	for _, path := range h.others() {
		h.write(path)
	}
	t.Cleanup(func() { _, _ = os.RemoveAll("/run/aws-node"), os.RemoveAll("/run/cni") })
	return h
}

// ours are files of the daemon and its plugins; others are the files next to them.
func (h *host) ours() []string {
	return []string{
		h.conf + "/10-aws.conflist", h.plugin + "/aws-cni", h.plugin + "/aws-cni-grpc", h.plugin + "/egress-cni", h.plugin + "/aws-cni-support.sh",
		"/run/aws-node/ipam.json", "/run/aws-node/ipam.json.tmp123", "/run/aws-node/ipam-v2.json", "/run/aws-node/attachments/054c-eth0.json",
		"/run/cni/v6pd/egress-v4-ipam/aws-cni/169.254.172.7", "/run/cni/v4pd/egress-v6-ipam/aws-cni/lock",
	}
}

func (h *host) others() []string {
	return []string{
		h.conf + "/99-loopback.conf", h.plugin + "/loopback", "/run/aws-node/npa.sock", "/run/cni/v6pd/egress-v4-ipam/other/169.254.172.7",
	}
}

func (h *host) write(path string) {
	h.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) sh(script string) string {
	h.t.Helper()
	var out, problem bytes.Buffer
	err := h.ns.Do(func() error {
		cmd := exec.Command("sh", "-euc", "PATH=$PATH:/usr/sbin:/sbin\n"+script)
		cmd.Stdout, cmd.Stderr = &out, &problem
		return cmd.Run()
	})
	if err != nil {
		h.t.Fatalf("%s\n%v: %s", script, err, &problem)
	}
	return out.String()
}

func (h *host) state() string {
	return h.sh("iptables-nft -t nat -S; nft list tables; ip rule; ip -4 route; ip -br link | cut -d' ' -f1")
}

// run runs the binary as it runs on the node.
func (h *host) run(args ...string) (out, problem string, code int) {
	h.t.Helper()
	return h.exec(h.bin, args...)
}

func (h *host) exec(program string, args ...string) (out, problem string, code int) {
	h.t.Helper()
	var stdout, stderr bytes.Buffer
	err := h.ns.Do(func() error {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "HOST_CNI_CONFDIR_PATH="+h.conf, "HOST_CNI_BIN_PATH="+h.plugin)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		return cmd.Run()
	})
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		h.t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return stdout.String(), stderr.String(), code
}

func (h *host) left(paths []string) (left []string) {
	for _, path := range paths {
		if _, err := os.Lstat(path); err == nil {
			left = append(left, path)
		}
	}
	return left
}

// Not parallel: the paths of the daemon's state are the same for all tests.
func TestUninstall(t *testing.T) {
	h := newHost(t)
	full := h.state()
	untouched := func(when string) {
		t.Helper()
		if d := cmp.Diff(full, h.state()); d != "" {
			t.Errorf("%s changed the node (-before +after):\n%s", when, d)
		}
		if d := cmp.Diff(append(h.ours(), h.others()...), h.left(append(h.ours(), h.others()...))); d != "" {
			t.Errorf("%s removed files (-before +after):\n%s", when, d)
		}
	}

	for _, args := range [][]string{{"--uninstall", "--nope"}, {"--uninstall", "x"}, {"--dry-run"}, {"--force"}, {"--wait"}, {"x"}} {
		if _, problem, code := h.run(args...); code != 2 || !strings.Contains(problem, "Usage: aws-k8s-agent") {
			t.Errorf("%q: code %d, %s", args, code, problem)
		}
	}
	if out, _, code := h.run("--help"); code != 0 || !strings.Contains(out, "--uninstall [--dry-run] [--force] [--wait]") {
		t.Errorf("--help: %d %s", code, out)
	}

	l, err := net.Listen("unix", "/run/aws-node/ipamd.sock")
	if err != nil {
		t.Fatal(err)
	}
	out, problem, code := h.run("--uninstall")
	if code != 1 || out != "" || !strings.Contains(problem, "nothing uninstalled: a daemon runs on this node (/var/run/aws-node/ipamd.sock answers)") {
		t.Errorf("under a daemon: %d %s%s", code, out, problem)
	}
	untouched("a refused run")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	h.sh("ip link add eni0d7763386da type veth peer name pod0; ip link set eni0d7763386da up; ip route add 10.0.0.21 dev eni0d7763386da")
	out, problem, code = h.run("--uninstall")
	if code != 1 || out != "" || !strings.Contains(problem, "1 pods on this node use its network (links eni0d7763386da)") {
		t.Errorf("with a living pod: %d %s%s", code, out, problem)
	}
	if _, _, code = h.run("--uninstall", "--dry-run"); code != 1 {
		t.Errorf("a dry run with a living pod: %d", code)
	}
	h.sh("ip link del eni0d7763386da")
	untouched("a refused run")

	dry, problem, code := h.run("--uninstall", "--dry-run")
	if code != 0 || problem != "" {
		t.Errorf("dry run: %d %s", code, problem)
	}
	untouched("a dry run")
	out, problem, code = h.run("--uninstall")
	if code != 0 || problem != "" {
		t.Errorf("%d %s%s", code, out, problem)
	}
	if d := cmp.Diff(h.before, h.state()); d != "" {
		t.Errorf("(-before the daemon +after uninstalling):\n%s", d)
	}
	if left := h.left(h.ours()); left != nil {
		t.Errorf("files are left: %q", left)
	}
	if d := cmp.Diff(h.others(), h.left(h.others())); d != "" {
		t.Errorf("files of others (-before +after):\n%s", d)
	}
	// The dry run and the real run print the same lines.
	if d := cmp.Diff(strings.ReplaceAll(dry, "would remove: ", "removed: "), out); d != "" {
		t.Errorf("(-dry run +run):\n%s", d)
	}
	const want = `removed: iptables-nft nat/POSTROUTING -m comment --comment "AWS SNAT CHAIN" -j AWS-SNAT-CHAIN-0
removed: iptables-nft nat chain AWS-SNAT-CHAIN-0
removed: nft table ip aws-cni
removed: ip rule 1024: from all fwmark 0x80/0x80 lookup main
removed: file /run/cni/v6pd/egress-v4-ipam/aws-cni
`
	lines := slices.DeleteFunc(strings.SplitAfter(out, "\n"), func(line string) bool { return !strings.Contains(want, line) })
	if got := strings.Join(lines, ""); got != want {
		t.Errorf("output:\n%s", out)
	}
	if !strings.Contains(out, "left as they are:\n  logs in /var/log/aws-routed-eni\n") || !strings.Contains(out, "/sys/fs/bpf/globals/aws") {
		t.Errorf("the output does not list what is left:\n%s", out)
	}

	if out, problem, code = h.run("--uninstall"); code != 0 || problem != "" || !strings.HasPrefix(out, "nothing to remove\n") {
		t.Errorf("a second time: %d %s%s", code, out, problem)
	}

	h.write(h.conf + "/10-aws.conflist/not-a-file")
	h.sh("ip rule add priority 20 lookup local; ip rule del priority 0; ip link add eni0d7763386da type veth peer name pod0; ip link set eni0d7763386da up; ip route add 10.0.0.21 dev eni0d7763386da")
	out, problem, code = h.run("--uninstall", "--force")
	if code != 1 || !strings.HasPrefix(problem, "not removed: file "+h.conf+"/10-aws.conflist: ") || !strings.Contains(out, "removed: link eni0d7763386da\n") {
		t.Errorf("with a living pod, by force, and a file that cannot go: %d %s%s", code, out, problem)
	}
	if d := cmp.Diff(h.before, h.state()); d != "" {
		t.Errorf("by force (-before the daemon +after uninstalling):\n%s", d)
	}
}

// otherRoot runs a program with the machine's files and a directory /host, which is created in
// a root directory of its own.
const otherRoot = `root=$1; shift
mount --make-rprivate /
mount -t tmpfs none "$root"
for d in /*; do
	if [ -L "$d" ]; then cp -P "$d" "$root$d"; elif [ -d "$d" ] && [ "$d" != /host ]; then mkdir "$root$d"; mount --rbind "$d" "$root$d"; fi
done
mkdir -p "$root/host/var/log/aws-routed-eni"
exec chroot "$root" "$@"`

// A daemon that was started by hand leaves its log below /host: that makes the host no container.
func TestUninstall_HostDirectory(t *testing.T) {
	h := newHost(t)
	out, problem, code := h.exec("unshare", "-m", "sh", "-euc", otherRoot, "otherRoot", t.TempDir(), h.bin, "--uninstall")
	if code != 0 || problem != "" || !strings.HasPrefix(out, "removed: ") {
		t.Errorf("%d %s%s", code, out, problem)
	}
	if left := h.left(h.ours()); left != nil {
		t.Errorf("files are left: %q", left)
	}
}
