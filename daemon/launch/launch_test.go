package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/config"
	"cnictl/daemon/install"
)

func load(env map[string]string) (config.Config, []config.Problem) {
	return config.Load(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
}

func with(pairs ...string) map[string]string {
	env := map[string]string{"ENABLE_IPv4": "true"}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return env
}

const warmPrefixText = "Setting WARM_PREFIX_TARGET = 0 is not supported while WARM_IP_TARGET/MINIMUM_IP_TARGET is not set. Please configure either one of the WARM_{PREFIX/IP}_TARGET or MINIMUM_IP_TARGET env variables"

// TestCheck lists what the entrypoint refuses, as upstream's does, with the edge cases. An
// empty text means that the value is accepted.
func TestCheck(t *testing.T) {
	t.Parallel()
	const reserved = "AWS_VPC_K8S_CNI_VETHPREFIX cannot be set to reserved values 'eth', 'vlan', or 'lo'"
	const mode = "POD_SECURITY_GROUP_ENFORCING_MODE must be set to either 'strict' or 'standard'"
	v6 := func(pairs ...string) map[string]string {
		env := with(pairs...)
		env["ENABLE_IPv4"], env["ENABLE_IPv6"], env["ENABLE_PREFIX_DELEGATION"] = "false", "true", "true"
		env["WARM_PREFIX_TARGET"] = "1"
		return env
	}
	for _, row := range []struct {
		env  map[string]string
		says string
	}{
		{with(), ""},
		{with("AWS_VPC_K8S_PLUGIN_LOG_FILE", "stdout"), "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout"},
		{with("AWS_VPC_K8S_PLUGIN_LOG_FILE", "STDOUT"), "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout"},
		{with("AWS_VPC_K8S_PLUGIN_LOG_FILE", "StdOut"), "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout"},
		{with("AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE", "stdout"), "AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE cannot be set to stdout"},
		{with("AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE", "Stdout"), "AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE cannot be set to stdout"},
		{with("AWS_VPC_K8S_PLUGIN_LOG_FILE", "stderr", "AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE", ""), ""},
		{with("AWS_VPC_K8S_CNI_VETHPREFIX", "abcd"), ""},
		{with("AWS_VPC_K8S_CNI_VETHPREFIX", "abcde"), "AWS_VPC_K8S_CNI_VETHPREFIX cannot be longer than 4 characters"},
		{with("AWS_VPC_K8S_CNI_VETHPREFIX", "eth"), reserved},
		{with("AWS_VPC_K8S_CNI_VETHPREFIX", "lo"), reserved},
		{with("AWS_VPC_K8S_CNI_VETHPREFIX", "vlan"), reserved},
		{with("AWS_VPC_K8S_CNI_VETHPREFIX", ""), "AWS_VPC_K8S_CNI_VETHPREFIX must be 1–4 characters"},
		{with("POD_SECURITY_GROUP_ENFORCING_MODE", "lax"), ""},
		{with("POD_SECURITY_GROUP_ENFORCING_MODE", "lax", "ENABLE_POD_ENI", "true"), mode},
		{with("POD_SECURITY_GROUP_ENFORCING_MODE", "Strict", "ENABLE_POD_ENI", "true"), mode},
		{with("POD_SECURITY_GROUP_ENFORCING_MODE", "standard", "ENABLE_POD_ENI", "true"), ""},
		{with("IP_COOLDOWN_PERIOD", "0"), ""},
		{with("IP_COOLDOWN_PERIOD", "-1"), "IP_COOLDOWN_PERIOD MUST be a valid positive integer. -1 is invalid"},
		{with("IP_COOLDOWN_PERIOD", "30s"), "IP_COOLDOWN_PERIOD MUST be a valid positive integer. 30s is invalid"},
		{with("AWS_VPC_ENI_MTU", "nine"), "AWS_VPC_ENI_MTU MUST be a valid integer. nine is invalid"},
		{with("POD_MTU", ""), "POD_MTU MUST be a valid integer.  is invalid"},
		{with("AWS_VPC_ENI_MTU", "575"), "AWS_VPC_ENI_MTU cannot be less than 576 or greater than 9001 in IPv4. 575 is invalid"},
		{with("AWS_VPC_ENI_MTU", "576"), ""},
		{with("POD_MTU", "9002"), "POD_MTU cannot be less than 576 or greater than 9001 in IPv4. 9002 is invalid"},
		{with("POD_MTU", "9001"), ""},
		{v6("AWS_VPC_ENI_MTU", "1279"), "AWS_VPC_ENI_MTU cannot be less than 1280 or greater than 9001 in IPv6. 1279 is invalid"},
		{v6("POD_MTU", "1279"), "POD_MTU cannot be less than 1280 or greater than 9001 in IPv6. 1279 is invalid"},
		{v6("POD_MTU", "1280"), ""},
		{with("ENABLE_PREFIX_DELEGATION", "true"), warmPrefixText},
		{with("ENABLE_PREFIX_DELEGATION", "true", "WARM_PREFIX_TARGET", "0", "WARM_IP_TARGET", "0"), warmPrefixText},
		{with("ENABLE_PREFIX_DELEGATION", "true", "WARM_PREFIX_TARGET", "1"), ""},
		{with("ENABLE_PREFIX_DELEGATION", "true", "MINIMUM_IP_TARGET", "2"), ""},
		{with("ENABLE_PREFIX_DELEGATION", "true", "WARM_IP_TARGET", "00"), ""}, // compared as text
		{with("WARM_PREFIX_TARGET", "0"), ""},
		{with("ENABLE_IPv6", "true"), "ipamd: failed to validate configuration"},
		{with("ENABLE_IPv4", "false"), "ipamd: failed to validate configuration"},
		{with("NETWORK_POLICY_ENFORCING_MODE", "loose"), "invalid Network policy mode, supported modes: none, strict, standard"},
	} {
		c, problems := load(row.env)
		var out bytes.Buffer
		err := check(c, problems, slog.New(slog.NewTextHandler(&out, nil)))
		switch {
		case row.says == "" && err != nil:
			t.Errorf("%v: %v", row.env, err)
		case row.says != "" && (err == nil || !strings.HasPrefix(err.Error(), row.says)):
			t.Errorf("%v: %v, want %q first", row.env, err, row.says)
		case len(each(err)) > 1:
			t.Errorf("%v: logged more than once: %v", row.env, err)
		case err != nil && out.Len() > 0:
			t.Errorf("%v: warned of what is refused: %s", row.env, &out)
		}
	}
}

// TestCheck_Warns of unused values that the entrypoint reads.
func TestCheck_Warns(t *testing.T) {
	t.Parallel()
	c, problems := load(with("ENABLE_BANDWIDTH_PLUGIN", "si", "WARM_ENI_TARGET", "many", "AWS_VPC_ENI_MTU", "1", "POD_MTU", "1"))
	var out bytes.Buffer
	err := check(c, problems, slog.New(slog.NewTextHandler(&out, nil)))
	if len(each(err)) != 2 {
		t.Errorf("want two refusals, each a line: %v", err)
	}
	if got := out.String(); !strings.Contains(got, "ENABLE_BANDWIDTH_PLUGIN") || strings.Contains(got, "WARM_ENI_TARGET") {
		t.Errorf("warned %s", got)
	}
}

// TestSettings: each variable reaches its place in the conflist, with upstream's defaults.
func TestSettings(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		env  map[string]string
		want func(*install.Settings)
		ipv6 bool
	}{
		"defaults":      {nil, func(*install.Settings) {}, false},
		"defaults IPv6": {map[string]string{"ENABLE_IPv6": "true"}, func(*install.Settings) {}, true},
		"all": {map[string]string{
			"AWS_VPC_K8S_CNI_VETHPREFIX": "abc", "AWS_VPC_ENI_MTU": "8000", "POD_SECURITY_GROUP_ENFORCING_MODE": "standard",
			"AWS_VPC_K8S_PLUGIN_LOG_FILE": "stderr", "AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "Warn", "AWS_VPC_K8S_CNI_RANDOMIZESNAT": "none",
			"ENABLE_BANDWIDTH_PLUGIN": "true", "DISABLE_POD_V6": "true", "CNI_CONFLIST_VERSIONS": "true", "ENABLE_V6_EGRESS": "true",
			"AWS_VPC_K8S_EGRESS_V6_PLUGIN_LOG_FILE": "/e6", "AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE": "/e4",
		}, func(s *install.Settings) {
			s.VethPrefix, s.MTU, s.PodSGEnforcingMode = "abc", "8000", "standard"
			s.PluginLogFile, s.PluginLogLevel, s.RandomizeSNAT = "stderr", "Warn", "none"
			s.Bandwidth, s.DisablePodV6, s.CNIVersions = true, true, install.AllCNIVersions()
			s.Egress.Enabled, s.Egress.LogFile = true, "/e6"
		}, false},
		"pod MTU": {map[string]string{"AWS_VPC_ENI_MTU": "8000", "POD_MTU": "1400"}, func(s *install.Settings) { s.MTU = "1400" }, false},
		"IPv6, other log": {map[string]string{"ENABLE_IPv6": "true", "AWS_VPC_K8S_EGRESS_V4_PLUGIN_LOG_FILE": "/e4", "ENABLE_V4_EGRESS": "false", "ENABLE_V6_EGRESS": "true"},
			func(s *install.Settings) { s.Egress.Enabled, s.Egress.LogFile = false, "/e4" }, true},
	} {
		c, problems := load(row.env)
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		want := install.Defaults(row.ipv6)
		row.want(&want)
		if diff := cmp.Diff(want, settings(c), cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// answers is a metadata service; a zero address means none.
type answers struct{ ipv4, ipv6 netip.Addr }

var errNotThere = errors.New("read metadata: not there")

func (a answers) LocalIPv4(context.Context) (netip.Addr, error)   { return orMissing(a.ipv4) }
func (a answers) PrimaryIPv6(context.Context) (netip.Addr, error) { return orMissing(a.ipv6) }

func orMissing(a netip.Addr) (netip.Addr, error) {
	if !a.IsValid() {
		return a, errNotThere
	}
	return a, nil
}

func TestFindNode(t *testing.T) {
	t.Parallel()
	v4, v6 := netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("2001:db8::4")
	for name, row := range map[string]struct {
		ipv6, egress bool
		metadata     answers
		node         netip.Addr
		enabled      bool
		warns, fails string
	}{
		"IPv6 cluster":                      {ipv6: true, egress: true, metadata: answers{ipv4: v4}, node: v4, enabled: true},
		"IPv6 cluster, egress off":          {ipv6: true, metadata: answers{ipv4: v4}, node: v4},
		"IPv6 cluster without IPv4":         {ipv6: true, metadata: answers{ipv6: v6}, fails: "failed to retrieve local-ipv4 address in imds metadata, error: read metadata: not there"},
		"IPv4 cluster asks for nothing":     {},
		"IPv4 cluster with egress":          {egress: true, metadata: answers{ipv6: v6}, node: v6, enabled: true},
		"IPv4 cluster with egress, no IPv6": {egress: true, metadata: answers{ipv4: v4}, warns: "To support IPv6 egress, node primary ENI must have a global IPv6 address, error: read metadata: not there"},
	} {
		s := install.Defaults(row.ipv6)
		s.Egress.Enabled = row.egress
		var warned string
		err := findNode(t.Context(), &s, row.ipv6, row.metadata, func(text string) { warned += text })
		fails := ""
		if err != nil {
			fails = err.Error()
		}
		if s.Egress.NodeIP != row.node || err == nil && s.Egress.Enabled != row.enabled || warned != row.warns || fails != row.fails {
			t.Errorf("%s: node %v, enabled %v, warned %q, failed %q", name, s.Egress.NodeIP, s.Egress.Enabled, warned, fails)
		}
	}
}

// TestReserved: egress-cni is left out only if it is certain that no DEL needs it.
func TestReserved(t *testing.T) {
	t.Parallel()
	const dataDir = "/run/cni/v4pd/egress-v6-ipam"
	for name, row := range map[string]struct {
		files []string // below the mount of /run/cni
		want  bool
	}{
		"nothing":            {[]string{"attachments/x"}, false},
		"emptied":            {[]string{"v4pd/egress-v6-ipam/aws-cni/lock", "v4pd/egress-v6-ipam/aws-cni/last_reserved_ip.0"}, false},
		"an address":         {[]string{"v4pd/egress-v6-ipam/aws-cni/lock", "v4pd/egress-v6-ipam/aws-cni/fd00::ac:2"}, true},
		"another network's":  {[]string{"v4pd/egress-v6-ipam/mine/fd00::ac:2"}, true},
		"the other family's": {[]string{"v6pd/egress-v4-ipam/aws-cni/169.254.172.2"}, false},
	} {
		dir := t.TempDir()
		for _, f := range row.files {
			path := filepath.Join(dir, f)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := reserved(dir, dataDir); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if !reserved(filepath.Join(t.TempDir(), "not mounted"), dataDir) || !reserved(t.TempDir(), "/elsewhere") {
		t.Error("what cannot be seen counts as empty")
	}
}

// TestRender_Egress: egress-cni stays in the conflist in some cases even if no pod needs it.
func TestRender_Egress(t *testing.T) {
	t.Parallel()
	hostRun := t.TempDir()
	users := strings.Replace(install.Template, `"snat": true`, `"snat": false`, 1)
	for name, row := range map[string]struct {
		template string
		env      map[string]string
		want     []string
	}{
		"off":                  {install.Template, nil, []string{"aws-cni", "portmap"}},
		"off, kept":            {install.Template, map[string]string{"CNI_CONFLIST_KEEP_EGRESS": "true"}, []string{"aws-cni", "egress-cni false", "portmap"}},
		"off, user's template": {users, nil, []string{"aws-cni", "egress-cni false", "portmap"}},
		"on":                   {install.Template, map[string]string{"ENABLE_V6_EGRESS": "true"}, []string{"aws-cni", "egress-cni true", "portmap"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, conflistName), []byte(row.template), 0o644); err != nil {
				t.Fatal(err)
			}
			c, problems := load(row.env)
			l := &launcher{
				Deps: Deps{Config: c, Dir: dir, HostRun: hostRun}, log: slog.New(slog.DiscardHandler),
				metadata: answers{ipv6: netip.MustParseAddr("2001:db8::4")},
			}
			text, err := l.render(t.Context())
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			var list struct {
				Plugins []struct{ Type, Enabled string }
			}
			if err := json.Unmarshal(text, &list); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range list.Plugins {
				got = append(got, strings.TrimSpace(p.Type+" "+p.Enabled))
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReasonIn(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ log, want string }{
		{"", ""},
		{"no JSON\n", ""},
		{`cut","msg":"x"}` + "\n" + `{"level":"info","msg":"one"}` + "\n" + `{"level":"info","msg":"two"}` + "\n" + `{"level":"in`, "two"},
		{`{"level":"warn","msg":"no answer","error":"EOF"}` + "\n" + `{"level":"info","msg":"two"}` + "\n", "no answer: EOF"},
		{`{"level":"error","msg":"a","reason":"b","error":"c"}` + "\n" + `{"level":"fatal","msg":"d"}` + "\n", "d"},
		{`{"level":7,"msg":"x"}` + "\n" + `[]` + "\n", ""},
	} {
		if got := reasonIn([]byte(row.log)); got != row.want {
			t.Errorf("%q: %q, want %q", row.log, got, row.want)
		}
	}
}

// FuzzReasonIn: for any log, the reason is part of it.
func FuzzReasonIn(f *testing.F) {
	f.Add([]byte(`{"level":"warn","msg":"a","error":"b"}` + "\n"))
	f.Add([]byte(`{"level":"info","msg":"` + "\x00\xff" + `"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := reasonIn(text)
		if got != "" && !bytes.Contains(text, []byte("{")) {
			t.Errorf("%q out of %q", got, text)
		}
		if again := reasonIn(append(bytes.Clone(text), "\n{\"level\":\"fatal\",\"msg\":\"the end\"}\n"...)); again != "the end" {
			t.Errorf("%q after a last line that is grave", again)
		}
	})
}

// TestDaemonLog reads what was added to a file since the daemon started, or all of it if it
// was rotated meanwhile.
func TestDaemonLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ipamd.log")
	put := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const old = `{"level":"error","msg":"of the daemon before"}` + "\n"
	put(old)
	l := openDaemonLog(path)
	if got := l.reason(); got != "" {
		t.Errorf("nothing new is %q", got)
	}
	put(old + `{"level":"info","msg":"up"}` + "\n")
	if got := l.reason(); got != "up" {
		t.Errorf("have %q", got)
	}
	put(`{"level":"info","msg":"r"}` + "\n")
	if got := l.reason(); got != "r" {
		t.Errorf("after a rotation %q", got)
	}
	secret, link := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "link.log")
	err := errors.Join(os.WriteFile(secret, []byte(old), 0o600), os.Symlink(secret, link), unix.Mkfifo(link+".fifo", 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if got := (daemonLog{path: link}).reason(); got != "" {
		t.Errorf("a link to another file: %q", got)
	}
	for _, none := range []string{"stdout", "STDERR", filepath.Join(path, "none"), link + ".fifo"} {
		if got := openDaemonLog(none).reason(); got != "" {
			t.Errorf("%s: %q", none, got)
		}
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &tail{to: &out}
	if got := c.lines(3); got != "" {
		t.Errorf("nothing is %q", got)
	}
	var all strings.Builder
	for i := range 200 {
		line := strings.Repeat(string(rune('a'+i%26)), 40) + "\n"
		all.WriteString(line)
		if n, err := io.WriteString(c, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	if out.String() != all.String() {
		t.Error("not everything was passed on")
	}
	want := strings.Repeat("q", 40) + "\n" + strings.Repeat("r", 40)
	if got := c.lines(2); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := c.lines(1000); strings.Count(got, "\n") != tailSize/41-1 {
		t.Errorf("%d whole lines are kept", strings.Count(got, "\n")+1)
	}
}

// TestTexts pins the texts that guides search for.
func TestTexts(t *testing.T) {
	t.Parallel()
	got := []string{textInstallPrograms, textStartDaemon, textLocalIPv4, textNoGlobalIPv6, textGenerate, textCopy, textWait, textTimedOut,
		textStarting, textChecking, textCopying, textSuccessful, textStopped, textInstalled("/host/opt/cni/bin/aws-cni")}
	want := []string{
		"Failed to install CNI binaries", "Failed to execute command: ./aws-k8s-agent", "failed to retrieve local-ipv4 address in imds metadata",
		"To support IPv6 egress, node primary ENI must have a global IPv6 address, error: ", "Failed to generate 10-awsconflist", "Failed to copy /10-aws.conflist",
		"Failed to wait for IPAM daemon to complete", "Timed out waiting for IPAM daemon to start",
		"Starting IPAM daemon... ", "Checking for IPAM connectivity... ", "Copying config file... ", "Successfully copied CNI plugin binary and config file.",
		"IPAMD stopped hence exiting ...", "Installed /host/opt/cni/bin/aws-cni\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
