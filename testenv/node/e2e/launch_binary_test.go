package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/install"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// image returns a directory with what the container aws-node has in its working directory.
func (l *lab) image() string {
	l.t.Helper()
	dir := l.t.TempDir()
	binaries, err := filepath.Abs(l.binaries)
	if err != nil {
		l.t.Fatal(err)
	}
	for name, from := range map[string]string{
		node.EntrypointBinary: node.EntrypointBinary, node.DaemonBinary: node.DaemonBinary,
		"aws-cni": "aws-cni", "aws-cni-grpc": "aws-cni-grpc", "egress-cni": "egress-cni",
	} {
		if err := os.Symlink(filepath.Join(binaries, from), filepath.Join(dir, name)); err != nil {
			l.t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			l.t.Fatalf("built binaries are missing; run: make build: %v", err)
		}
	}
	l.write(filepath.Join(dir, "10-aws.conflist"), install.Template, 0o644)
	return dir
}

func (l *lab) write(path, text string, mode os.FileMode) {
	l.t.Helper()
	_ = os.Remove(path) // it may be a link
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		l.t.Fatal(err)
	}
}

// launched is a node with the image; tests start its entrypoint.
type launched struct {
	one
	dir string
}

func (l *lab) launched(spec fakeaws.InstanceSpec) launched {
	l.t.Helper()
	if spec.SubnetID == "" {
		spec.SubnetID = l.subnet.ID
	}
	spec.Type = "m5.large"
	i, err := l.world.AddInstance(spec)
	if err != nil {
		l.t.Fatal(err)
	}
	return launched{one{l, l.node(i.ID)}, l.image()}
}

func (m launched) start(env map[string]string) {
	m.t.Helper()
	if err := m.StartEntrypoint(m.dir, env); err != nil {
		m.t.Fatal(err)
	}
}

// ends waits until the entrypoint exits on its own and checks its status and output.
func (m launched) ends(code int, says ...string) {
	m.t.Helper()
	ctx := testenv.Context(m.t)
	r, err := m.DaemonEnded(ctx)
	if err != nil {
		m.t.Fatalf("%v\n%s", err, m.said())
	}
	if r.Code != code {
		m.t.Errorf("exit status %d, want %d", r.Code, code)
	}
	m.shows(m.said(), says...)
}

// stops signals the entrypoint and checks its status and output.
func (m launched) stops(s syscall.Signal, code int, says ...string) {
	m.t.Helper()
	ctx := testenv.Context(m.t)
	r, err := m.StopDaemon(ctx, s)
	if err != nil {
		m.t.Fatalf("%v\n%s", err, m.said())
	}
	if r.Code != code {
		m.t.Errorf("exit status %d, want %d", r.Code, code)
	}
	m.shows(m.said(), says...)
}

// said returns the output of the last entrypoint and of its daemon.
func (m launched) said() string {
	files, err := filepath.Glob(filepath.Join(m.Dir, "log", "daemon-*.out"))
	if err != nil || len(files) == 0 {
		m.t.Fatalf("no output of an entrypoint: %v", err)
	}
	last := files[0]
	for _, f := range files {
		if len(f) > len(last) || len(f) == len(last) && f > last {
			last = f
		}
	}
	return text(m.t, last)
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (m launched) conflist() string { return filepath.Join(m.Dir, "cni-net.d", "10-aws.conflist") }
func (m launched) bin() string      { return filepath.Join(m.Dir, "opt-cni-bin") }
func (m launched) there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func (m launched) untilSaid(what string) {
	m.t.Helper()
	testenv.Eventually(m.t, "the entrypoint to say "+what, func() bool { return strings.Contains(m.said(), what) })
}

const ready = "Successfully copied CNI plugin binary and config file."

// TestEntrypoint_Life follows an entrypoint through a container's life: the first start after
// a boot, changes by other programs while it runs, its exit, and a restart.
func TestEntrypoint_Life(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	m := l.launched(fakeaws.InstanceSpec{})
	held := make(chan struct{})
	l.world.SetIMDSFaults(func(path string, _ int) int { // meanwhile the daemon cannot become ready
		select {
		case <-held:
			return 0
		default:
			return 500
		}
	})
	l.write(m.conflist(), "of an earlier boot", 0o644)
	l.write(filepath.Join(m.bin(), "aws-cni.tmp"), "half of a plugin", 0o600)
	m.start(nil)
	m.untilSaid("Checking for IPAM connectivity... ")
	if m.there(m.conflist()) {
		t.Error("the node is called ready although no daemon serves")
	}
	if m.there(filepath.Join(m.bin(), "aws-cni.tmp")) {
		t.Error("the rest of an installation is still there")
	}
	for _, name := range []string{"aws-cni-grpc", "aws-cni", "egress-cni"} {
		if text(t, filepath.Join(m.bin(), name)) != text(t, filepath.Join(m.dir, name)) {
			t.Errorf("%s is not installed", name)
		}
		m.shows(m.said(), "Installed "+filepath.Join(m.bin(), name)+"\n")
	}
	m.shows(m.said(), "removed the conflist of an earlier boot", "Starting IPAM daemon... ", "!"+ready)
	close(held)
	testenv.Eventually(m.t, "the conflist", func() bool { return m.there(m.conflist()) })
	if c, err := m.Dial("unix", node.GRPCSocket, testenv.Left(t)); err != nil {
		t.Errorf("the conflist is there and nothing serves: %v", err)
	} else if err := c.Close(); err != nil {
		t.Error(err)
	}
	m.untilSaid(ready)
	want, err := install.Conflist(install.Template, func() install.Settings {
		s := install.Defaults(false)
		s.PluginLogFile, s.PluginLogLevel = filepath.Join(m.Dir, "log", "plugin.log"), "DEBUG"
		return s
	}())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text(t, m.conflist())); diff != "" {
		t.Errorf("conflist (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(m.conflist()); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("conflist: mode %v, error %v", info, err)
	}

	// Another program changes the installed files.
	if err := os.Remove(filepath.Join(m.bin(), "aws-cni")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.conflist(), m.conflist()+".cilium_bak"); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(m.t, "the plugin to come back", func() bool { return m.there(filepath.Join(m.bin(), "aws-cni")) })
	m.untilSaid("the conflist is gone")
	if m.there(m.conflist()) {
		t.Error("the entrypoint fights who renames the conflist")
	}
	if err := os.Rename(m.conflist()+".cilium_bak", m.conflist()); err != nil {
		t.Fatal(err)
	}
	m.untilSaid("the conflist is back as it was installed")

	pods := m.mustAdd(m.Node, "p", 2, 2)
	m.stops(syscall.SIGTERM, 0, "IPAMD stopped hence exiting ...", "!Failed")
	m.refusedOn(node.LeanSocket)
	entries, err := checkpoint.Decode([]byte(m.read(node.Checkpoint)))
	if err != nil || len(entries) != 2 {
		t.Errorf("after the end the checkpoint has %+v, error %v; want both pods", entries, err)
	}

	// A restart must not make the node NotReady.
	m.start(nil)
	m.untilSaid("Checking for IPAM connectivity... ")
	if !m.there(m.conflist()) {
		t.Error("a restart has removed the conflist")
	}
	m.untilSaid(ready)
	m.del(m.Node, pods, 2)
	m.stops(syscall.SIGINT, 0, "IPAMD stopped hence exiting ...")
	m.nothingLeftButDaemon()
}

func (m launched) refusedOn(socket string) {
	m.t.Helper()
	if c, err := m.Dial("unix", socket, time.Second); err == nil { //realtime: nothing answers
		_ = c.Close()
		m.t.Errorf("%s answers", socket)
	}
}

// nothingLeftButDaemon checks that no process of the container has outlived it.
func (m launched) nothingLeftButDaemon() {
	m.t.Helper()
	r, err := m.Exec(agent.Cmd{Argv: []string{"/bin/sh", "-c", "cat /proc/[0-9]*/comm"}})
	if err != nil {
		m.t.Fatal(err)
	}
	m.shows(string(r.Stdout), "!aws-k8s-agent", "!aws-vpc-cni")
}

// TestEntrypoint_Ends provokes each reason for which the entrypoint exits on its own.
func TestEntrypoint_Ends(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	v := l.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	dual, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64")})
	if err != nil {
		t.Fatal(err)
	}
	type env = map[string]string
	ipv6 := env{"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true"}
	for _, row := range []struct {
		name   string
		spec   fakeaws.InstanceSpec
		env    env
		before func(launched)
		during func(launched)
		says   []string
		ready  bool // the conflist was installed
	}{
		{name: "a setting", env: env{"AWS_VPC_ENI_MTU": "100"}, says: []string{"AWS_VPC_ENI_MTU cannot be less than 576 or greater than 9001 in IPv4", "!Installed "}},
		{name: "a setting of the daemon", env: env{"ENABLE_IPv4": "false"}, says: []string{"ipamd: failed to validate configuration", "!Installed "}},
		{name: "a plugin is missing", before: func(m launched) { m.remove(filepath.Join(m.dir, "egress-cni")) }, says: []string{"Failed to install CNI binaries: install "}},
		{name: "the directory of plugins is missing", env: env{"HOST_CNI_BIN_PATH": "/run/aws-node/none"}, says: []string{"Failed to install CNI binaries: install /run/aws-node/none/aws-cni", "the directory must exist"}},
		{name: "the directory of plugins is read-only", env: env{"HOST_CNI_BIN_PATH": "/usr/bin"}, says: []string{"Failed to install CNI binaries: install /usr/bin/aws-cni", "the directory must be writable"}},
		{name: "the daemon is missing", before: func(m launched) { m.remove(filepath.Join(m.dir, node.DaemonBinary)) }, says: []string{"Failed to execute command: ./aws-k8s-agent"}},
		{name: "the daemon cannot start", env: env{"AWS_VPC_K8S_CNI_LOG_FILE": "/proc/none/ipamd.log"}, says: []string{"Failed to wait for IPAM daemon to complete: the daemon exited with status 1; its last message: aws-k8s-agent: open log: "}},
		{name: "the daemon never serves", env: env{"CNI_START_LIMIT": "1s"},
			before: func(m launched) {
				m.write(filepath.Join(m.dir, node.DaemonBinary), "#!/bin/sh\ntrap 'exit 0' TERM\necho '{\"level\":\"warn\",\"msg\":\"waiting for the moon\"}' >>\"$AWS_VPC_K8S_CNI_LOG_FILE\"\nwhile :; do sleep 0.05; done\n", 0o755)
			},
			says: []string{"Timed out waiting for IPAM daemon to start: not within CNI_START_LIMIT (1s): ", "ipamd.sock: connect: no such file or directory; it last logged: waiting for the moon"}},
		{name: "the daemon says why and dies", before: func(m launched) {
			m.write(filepath.Join(m.dir, node.DaemonBinary), "#!/bin/sh\nsh -c 'sleep 0.01 & echo $! >/run/aws-node/orphan'\nread -r pid </run/aws-node/orphan\nwhile kill -0 $pid 2>/dev/null; do sleep 0.05; done\necho 'the orphan is reaped' >&2\nexit 7\n", 0o755)
		}, says: []string{"the daemon exited with status 7; its last message: the orphan is reaped"}},
		{name: "the daemon is killed while it starts",
			before: func(m launched) {
				m.write(filepath.Join(m.dir, node.DaemonBinary), "#!/bin/sh\nkill -9 $$\n", 0o755)
			},
			says: []string{"Failed to wait for IPAM daemon to complete: the daemon was killed by SIGKILL"}},
		{name: "the daemon is killed", during: func(m launched) {
			m.untilSaid(ready)
			m.killDaemon()
		}, says: []string{"Failed to wait for IPAM daemon to complete: the daemon was killed by SIGKILL"}, ready: true},
		{name: "no template", before: func(m launched) { m.remove(filepath.Join(m.dir, "10-aws.conflist")) },
			says: []string{"Failed to generate 10-awsconflist: read the template: "}},
		{name: "a template that is no JSON", before: func(m launched) { m.write(filepath.Join(m.dir, "10-aws.conflist"), `{"mtu": __MTU__ x}`, 0o644) },
			says: []string{`Failed to generate 10-awsconflist: {\"mtu\": 9001 x} is not a valid json object, error: `, "stopping the daemon"}},
		{name: "the directory of conflists is missing", env: env{"HOST_CNI_CONFDIR_PATH": "/run/aws-node/none"},
			says: []string{"Failed to copy /10-aws.conflist: install /run/aws-node/none/10-aws.conflist"}},
		{name: "a directory in place of the conflist", before: func(m launched) {
			if err := os.MkdirAll(filepath.Join(m.conflist(), "x"), 0o755); err != nil {
				m.t.Fatal(err)
			}
		}, says: []string{"Failed to copy /10-aws.conflist: remove the conflist of an earlier boot: "}, ready: true},
		{name: "no IPv4 address in an IPv6 cluster", spec: fakeaws.InstanceSpec{SubnetID: dual.ID, IPv6: true}, env: ipv6,
			before: func(m launched) {
				m.grant(m.InstanceID, "aws-node-ipv6")
				m.world.SetIMDSFaults(func(path string, _ int) int {
					if path == "meta-data/local-ipv4" {
						return 404
					}
					return 0
				})
			},
			says: []string{"Failed to generate 10-awsconflist: failed to retrieve local-ipv4 address in imds metadata, error: "}},
	} {
		t.Run(row.name, func(t *testing.T) {
			here := *l
			here.t = t
			m := here.launched(row.spec)
			if row.before != nil {
				row.before(m)
			}
			m.start(row.env)
			if row.during != nil {
				row.during(m)
			}
			m.ends(1, row.says...)
			if got := m.there(m.conflist()); got != row.ready {
				t.Errorf("conflist there: %v, want %v", got, row.ready)
			}
			m.nothingLeftButDaemon()
			l.world.SetIMDSFaults(nil)
		})
	}
}

func (m launched) remove(path string) {
	m.t.Helper()
	if err := os.Remove(path); err != nil {
		m.t.Fatal(err)
	}
}

// killDaemon kills the entrypoint's daemon, by its process id in the node.
func (m launched) killDaemon() {
	m.t.Helper()
	r, err := m.Exec(agent.Cmd{Argv: []string{"/bin/sh", "-c", `for p in /proc/[0-9]*; do read -r name <$p/comm; [ "$name" != aws-k8s-agent ] || kill -9 ${p#/proc/}; done`}})
	if err != nil || r.Code != 0 {
		m.t.Fatalf("kill the daemon: %+v, error %v", r, err)
	}
}

// TestEntrypoint_Signals: each signal reaches the daemon, the first and further ones, also
// while it starts. A daemon that does not exit is killed before kubelet kills the container.
func TestEntrypoint_Signals(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	script := func(t *testing.T, text string) launched {
		t.Parallel()
		here := *l
		here.t = t
		m := here.launched(fakeaws.InstanceSpec{})
		m.write(filepath.Join(m.dir, node.DaemonBinary), "#!/bin/sh\n"+text, 0o755)
		m.start(nil)
		m.untilSaid("daemon up")
		return m
	}
	t.Run("while it starts", func(t *testing.T) {
		m := script(t, "trap 'echo got TERM; exit 0' TERM\necho daemon up\nwhile :; do sleep 0.02; done\n")
		m.stops(syscall.SIGTERM, 0, "got TERM", "IPAMD stopped hence exiting ...")
	})
	t.Run("a second one", func(t *testing.T) {
		m := script(t, "trap 'echo got TERM' TERM; trap 'echo got INT; exit 3' INT\necho daemon up\nwhile :; do sleep 0.02; done\n")
		pid := m.DaemonPID()
		r, err := m.Exec(agent.Cmd{Argv: []string{"/bin/sh", "-c", fmt.Sprintf("kill -TERM %d", pid)}})
		if err != nil || r.Code != 0 {
			t.Fatalf("%+v, error %v", r, err)
		}
		m.untilSaid("got TERM")
		m.stops(syscall.SIGINT, 1, "got INT", "the daemon exited with status 3")
	})
	t.Run("ignored", func(t *testing.T) {
		m := script(t, "trap '' TERM INT\necho daemon up\nwhile :; do sleep 0.02; done\n")
		m.untilSaid("Checking for IPAM connectivity... the daemon is not ready yet")
		m.stops(syscall.SIGTERM, 1, "did not exit within 9s of the signal and was killed")
		m.nothingLeftButDaemon()
	})
}

// TestEntrypoint_Conflist checks the conflist that the settings and the user's template produce.
func TestEntrypoint_Conflist(t *testing.T) {
	t.Parallel()
	l := newLab(t, fakeaws.Options{})
	v := l.world.AddVPC(netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("2001:db8:1::/56"))
	dual, err := l.world.AddSubnet(fakeaws.SubnetSpec{VPCID: v.ID, CIDR: netip.MustParsePrefix("10.2.0.0/20"), IPv6CIDR: netip.MustParsePrefix("2001:db8:1:2::/64")})
	if err != nil {
		t.Fatal(err)
	}
	type env = map[string]string
	for _, row := range []struct {
		name     string
		spec     fakeaws.InstanceSpec
		env      env
		template string
		want     func(launched, map[string]any)
	}{
		{name: "a user's template", template: `{"cniVersion":"0.4.0","name":"aws-cni","mine":{"b":[1,2]},"plugins":[{"type":"aws-cni","mtu":"__MTU__","extra":7}]}`,
			env: env{"ENABLE_BANDWIDTH_PLUGIN": "true", "DISABLE_POD_V6": "true", "POD_MTU": "1400", "CNI_CONFLIST_VERSIONS": "true"},
			want: func(m launched, list map[string]any) {
				m.equal(map[string]any{
					"cniVersion": "0.4.0", "cniVersions": []any{"0.4.0", "1.0.0", "1.1.0"}, "name": "aws-cni", "mine": map[string]any{"b": []any{1.0, 2.0}},
					"plugins": []any{
						map[string]any{"type": "aws-cni", "mtu": "1400", "extra": 7.0},
						map[string]any{"type": "bandwidth", "capabilities": map[string]any{"bandwidth": true}},
						map[string]any{"type": "tuning", "sysctl": map[string]any{
							"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1", "net.ipv6.conf.lo.disable_ipv6": "1"}},
					},
				}, list)
			}},
		{name: "settings", env: env{"AWS_VPC_K8S_CNI_VETHPREFIX": "abc", "AWS_VPC_ENI_MTU": "1500", "AWS_VPC_K8S_PLUGIN_LOG_FILE": "stderr", "AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "ERROR",
			"AWS_VPC_K8S_CNI_RANDOMIZESNAT": "none", "AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE": "/var/log/e6.log"},
			want: func(m launched, list map[string]any) {
				m.has(list, 0, map[string]any{"vethPrefix": "abc", "mtu": "1500", "pluginLogFile": "stderr", "pluginLogLevel": "ERROR", "podSGEnforcingMode": "strict"})
				m.has(list, 1, map[string]any{"type": "egress-cni", "enabled": "false", "randomizeSNAT": "none", "pluginLogFile": "/var/log/e6.log", "nodeIP": "", "mtu": "1500"})
			}},
		{name: "IPv6 egress", spec: fakeaws.InstanceSpec{SubnetID: dual.ID, IPv6: true}, env: env{"ENABLE_V6_EGRESS": "true"},
			want: func(m launched, list map[string]any) {
				m.has(list, 1, map[string]any{"type": "egress-cni", "enabled": "true", "nodeIP": m.Primary.IPv6s[0].String()})
			}},
		{name: "IPv6 egress on a node without", env: env{"ENABLE_V6_EGRESS": "true"},
			want: func(m launched, list map[string]any) {
				m.has(list, 1, map[string]any{"type": "egress-cni", "enabled": "false", "nodeIP": ""})
				m.shows(m.said(), "To support IPv6 egress, node primary ENI must have a global IPv6 address, error: ")
			}},
		{name: "an IPv6 cluster", spec: fakeaws.InstanceSpec{SubnetID: dual.ID, IPv6: true},
			env: env{"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true", "AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE": "/var/log/e4.log"},
			want: func(m launched, list map[string]any) {
				m.has(list, 1, map[string]any{"type": "egress-cni", "enabled": "true", "nodeIP": m.Primary.PrimaryIP.String(), "pluginLogFile": "/var/log/e4.log"})
			}},
		{name: "an IPv6 cluster without egress", spec: fakeaws.InstanceSpec{SubnetID: dual.ID, IPv6: true},
			env: env{"ENABLE_IPv4": "false", "ENABLE_IPv6": "true", "ENABLE_PREFIX_DELEGATION": "true", "ENABLE_V4_EGRESS": "false"},
			want: func(m launched, list map[string]any) {
				m.has(list, 1, map[string]any{"type": "egress-cni", "enabled": "false", "nodeIP": m.Primary.PrimaryIP.String()})
			}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			here := *l
			here.t = t
			m := here.launched(row.spec)
			if row.template != "" {
				m.write(filepath.Join(m.dir, "10-aws.conflist"), row.template, 0o644)
			}
			if row.env["ENABLE_IPv6"] == "true" {
				m.grant(m.InstanceID, "aws-node-ipv6")
			}
			m.start(row.env)
			m.untilSaid(ready)
			var list map[string]any
			if err := json.Unmarshal([]byte(text(t, m.conflist())), &list); err != nil {
				t.Fatal(err)
			}
			row.want(m, list)
			m.stops(syscall.SIGTERM, 0)
		})
	}
}

func (m launched) equal(want, got any) {
	m.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		m.t.Errorf("(-want +got):\n%s", diff)
	}
}

// has compares some keys of one plugin in a conflist.
func (m launched) has(list map[string]any, plugin int, want map[string]any) {
	m.t.Helper()
	plugins, _ := list["plugins"].([]any)
	if len(plugins) <= plugin {
		m.t.Fatalf("plugin %d is not in %v", plugin, list)
	}
	have, _ := plugins[plugin].(map[string]any)
	got := map[string]any{}
	for key := range want {
		got[key] = have[key]
	}
	m.equal(want, got)
}
