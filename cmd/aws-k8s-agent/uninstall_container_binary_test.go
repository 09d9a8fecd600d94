package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/deploy"
	"cnictl/testenv"
)

// container imitates how a runtime runs the image with the mounts of deploy: the root is read-only,
// /host has directories of the host, and only the manifest's capabilities are granted.
// The arguments are the root's directory, the program, the host's two directories, the
// capabilities and how /run/cni is mounted: "rw", "ro" or "no"; "bare" is "rw" without
// iptables and nft.
const container = `root=$1 bin=$2 conf=$3 plugin=$4 granted=$5 state=$6; shift 6
PATH=$PATH:/usr/sbin:/sbin
mount --make-rprivate /
mount -t tmpfs none "$root"
for d in usr bin sbin lib lib64 etc proc sys dev; do
	if [ -L /$d ]; then cp -P /$d "$root/$d"; elif [ -d /$d ]; then mkdir "$root/$d"; mount --rbind /$d "$root/$d"; fi
done
mkdir -p "$root/app" "$root/var" "$root/run/aws-node" "$root/host/opt/cni/bin" "$root/host/etc/cni/net.d"
ln -s /run "$root/var/run"
touch /run/xtables.lock "$root/run/xtables.lock" "$root/app/aws-k8s-agent"
mount --bind "$bin" "$root/app/aws-k8s-agent"
mount --bind "$conf" "$root/host/etc/cni/net.d"
mount --bind "$plugin" "$root/host/opt/cni/bin"
mount --bind /run/aws-node "$root/run/aws-node"
mount --bind /run/xtables.lock "$root/run/xtables.lock"
if [ "$state" = bare ]; then
	mount -t tmpfs none "$root/usr/sbin"
	state=rw
fi
if [ "$state" != no ]; then
	mkdir -p "$root/host/run/cni"
	mount --bind /run/cni "$root/host/run/cni"
	mount -o "remount,bind,$state" "$root/host/run/cni"
fi
mount -o remount,bind,ro "$root"
exec chroot "$root" /usr/bin/setpriv --bounding-set="-all,$granted" --inh-caps=-all --no-new-privs /app/aws-k8s-agent "$@"`

// inContainer prepares the program with the mounts of deploy/uninstall.yaml, except
// /run/cni, which state describes.
func (h *host) inContainer(state string, args ...string) *exec.Cmd {
	h.t.Helper()
	granted, err := deploy.Capabilities()
	if err != nil {
		h.t.Fatal(err)
	}
	for i, name := range granted {
		granted[i] = "+" + strings.ToLower(name)
	}
	argv := []string{"-m", "sh", "-euc", container, "container", h.t.TempDir(), h.bin, h.conf, h.plugin, strings.Join(granted, ","), state}
	return exec.Command("unshare", append(argv, args...)...)
}

func (h *host) contained(state string, args ...string) (out, problem string, code int) {
	h.t.Helper()
	cmd := h.inContainer(state, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := h.ns.Do(cmd.Run)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = exit.ExitCode()
	case err != nil:
		h.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), code
}

// leases are our files below /run/cni.
func (h *host) leases() []string {
	return slices.DeleteFunc(h.ours(), func(path string) bool { return !strings.HasPrefix(path, "/run/cni/") })
}

// With the mounts of deploy/uninstall.yaml everything is removed, including the leases of
// egress addresses. A container that cannot remove or see them reports that and fails.
func TestUninstall_InContainer(t *testing.T) {
	h := newHost(t)
	if err := errors.Join(os.Chown(h.conf, 1001, 1001), os.Chown(h.plugin, 1001, 1001)); err != nil { // as archives of the reference plugins unpack
		t.Fatal(err)
	}
	const lease4, lease6 = "file /host/run/cni/v6pd/egress-v4-ipam/aws-cni", "file /host/run/cni/v4pd/egress-v6-ipam/aws-cni"
	const readOnly = "read-only file system; mount it writable, as deploy/uninstall.yaml does\n"
	full, paths := h.state(), append(h.ours(), h.others()...)

	// As the aws-node container mounts it.
	dry, problem, code := h.contained("ro", "--uninstall", "--dry-run")
	if code != 1 || strings.Contains(dry, "run/cni/") || strings.Count(problem, readOnly) != 2 ||
		!strings.Contains(problem, "not removed: "+lease4+": ") || !strings.Contains(problem, "not removed: "+lease6+": ") {
		t.Errorf("dry run with a read-only /host/run/cni: %d %s%s", code, dry, problem)
	}
	if d := cmp.Diff(full, h.state()) + cmp.Diff(paths, h.left(paths)); d != "" {
		t.Errorf("a dry run changed the node (-before +after):\n%s", d)
	}
	out, problem, code := h.contained("ro", "--uninstall")
	if code != 1 || strings.Count(problem, readOnly) != 2 || !strings.Contains(problem, "not removed: "+lease4+": ") {
		t.Errorf("with a read-only /host/run/cni: %d %s%s", code, out, problem)
	}
	if d := cmp.Diff(strings.ReplaceAll(dry, "would remove: ", "removed: "), out); d != "" {
		t.Errorf("(-dry run +run):\n%s", d)
	}
	if d := cmp.Diff(h.before, h.state()) + cmp.Diff(h.leases(), h.left(h.ours())); d != "" {
		t.Errorf("beside leases (-want +left):\n%s", d)
	}

	// Some hosts have neither.
	_, problem, code = h.contained("bare", "--uninstall", "--dry-run")
	if code != 1 || strings.Count(problem, "it is not installed") != 3 {
		t.Errorf("without iptables and nft: %d %s", code, problem)
	}

	// As upstream's manifest mounts it.
	for _, args := range [][]string{{"--uninstall", "--dry-run"}, {"--uninstall"}} {
		out, problem, code := h.contained("no", args...)
		if code != 1 || !strings.HasPrefix(out, "nothing to remove\n") ||
			!strings.HasPrefix(problem, "not removed: leases of egress addresses, if any: this container has no /host/run/cni; ") {
			t.Errorf("%q without /host/run/cni: %d %s%s", args, code, out, problem)
		}
	}

	out, problem, code = h.contained("rw", "--uninstall")
	if code != 0 || problem != "" || !strings.HasPrefix(out, "removed: "+lease4+"\nremoved: "+lease6+"\nleft as they are:\n") {
		t.Errorf("with a writable /host/run/cni: %d %s%s", code, out, problem)
	}
	if d := cmp.Diff(h.others(), h.left(paths)); d != "" {
		t.Errorf("files (-others +left):\n%s", d)
	}
	h.stays()
}

// stays expects the manifest's second container to find nothing and to wait for a signal.
func (h *host) stays() {
	h.t.Helper()
	cmd := h.inContainer("rw", "--uninstall", "--dry-run", "--wait")
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := h.ns.Do(cmd.Start); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(pipe)
	if !lines.Scan() || lines.Text() != "nothing to remove" {
		h.t.Errorf("said %q (%v)", lines.Text(), lines.Err())
	}
	// A program that exits closes its output, and does so sooner than this.
	if err := pipe.(*os.File).SetReadDeadline(testenv.Soon()); err != nil {
		h.t.Fatal(err)
	}
	for lines.Scan() {
	}
	if !errors.Is(lines.Err(), os.ErrDeadlineExceeded) {
		h.t.Errorf("it did not stay: %v", lines.Err())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		h.t.Errorf("its end: %v", err)
	}
}
