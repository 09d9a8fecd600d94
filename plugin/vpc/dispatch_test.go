package vpc_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/vpc"
)

const libraryVersions = "0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0"

// run runs a command in process, without a daemon. An ADD must fail before it reaches the
// network.
func run(env map[string]string, stdin string) (code int, stdout, stderr string) {
	var out, errOut bytes.Buffer
	p := vpc.Process{
		Getenv: func(k string) string { return env[k] },
		Stdin:  strings.NewReader(stdin), Stdout: &out, Stderr: &errOut,
		Now: time.Now, Version: "v9", Socket: "/nonexistent/cni.sock", Checkpoint: "/nonexistent/ipam.json",
	}
	code = p.Run()
	return code, out.String(), errOut.String()
}

func env(command string, more ...string) map[string]string {
	e := map[string]string{
		"CNI_COMMAND": command, "CNI_CONTAINERID": "abc", "CNI_NETNS": "/run/netns/none", "CNI_IFNAME": "eth0", "CNI_PATH": "/opt/cni/bin",
	}
	for i := 0; i < len(more); i += 2 {
		e[more[i]] = more[i+1]
	}
	return e
}

const (
	argsAccepted = `; accepted are pairs KEY=VALUE joined by ";" with the keys ` +
		"K8S_POD_NAME, K8S_POD_NAMESPACE, K8S_POD_INFRA_CONTAINER_ID, K8S_POD_UID, IgnoreUnknown, and others with IgnoreUnknown=1"
	netnsAccepted = "; accepted is the path of a network namespace, such as /run/netns/<name>"
)

// magic returns the type of the file system that holds a file.
func magic(t *testing.T, file string) string {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(file, &fs); err != nil {
		t.Fatal(err)
	}
	return strconv.FormatInt(int64(fs.Type), 16)
}

func TestDispatch(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const conf = `{"cniVersion":"0.4.0","name":"aws-cni","type":"aws-cni","pluginLogFile":"/dev/null"}`
	withVersion := func(v string) string { return strings.Replace(conf, "0.4.0", v, 1) }
	for _, row := range []struct {
		name  string
		env   map[string]string
		stdin string
		code  int // CNI code; 0 for success without output
		cause cause.Code
		msg   string
		more  string // the title of the cause by default
	}{
		{name: "check", env: env("CHECK"), stdin: conf},
		{name: "check old", env: env("CHECK"), stdin: withVersion("0.3.1"), code: 1, cause: cause.InvalidConfig, msg: "config version does not allow CHECK"},
		{name: "check without version", env: env("CHECK"), stdin: `{"name":"a"}`, code: 1, cause: cause.InvalidConfig, msg: "config version does not allow CHECK"},
		{name: "check future", env: env("CHECK"), stdin: withVersion("9.0.0"), code: 1, cause: cause.InvalidConfig, msg: "plugin version does not allow CHECK"},
		{name: "check odd", env: env("CHECK"), stdin: withVersion("x"), code: 6, cause: cause.InvalidConfig,
			msg: `failed to convert major version part "x": strconv.Atoi: parsing "x": invalid syntax`},
		{name: "check odd in between", env: env("CHECK"), stdin: withVersion("0.9.0"), code: 1, cause: cause.InvalidConfig, msg: "incompatible CNI versions",
			more: `config is "0.9.0", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]`},
		{name: "check, another pod's result", env: env("CHECK"), stdin: `{"cniVersion":"1.0.0","name":"a","pluginLogFile":"/dev/null","prevResult":{"interfaces":[{"name":"dummy1"}]}}`},
		{name: "check, damaged result", env: env("CHECK"), stdin: `{"cniVersion":"1.0.0","name":"a","pluginLogFile":"/dev/null","prevResult":{"interfaces":5}}`, code: 999, cause: cause.InvalidRequest,
			msg: "check cmd: error loading config from args: could not parse prevResult: interfaces is number, not array, at offset 14"},
		{name: "check, args", env: env("CHECK", "CNI_ARGS", "FOO=bar"), stdin: conf, code: 999, cause: cause.InvalidRequest,
			msg: `check cmd: failed to load k8s config from arg: ARGS: unknown args ["FOO=bar"]`, more: `CNI_ARGS is "FOO=bar"` + argsAccepted},
		{name: "check, no namespace", env: env("CHECK", "CNI_ARGS", "K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0"), stdin: strings.Replace(conf, "{",
			`{"prevResult":`+recorded(t, "add-web-0.json")+",", 1), code: 999, cause: cause.NetnsGone,
			msg:  `check cmd: failed to Statfs "/run/netns/none": no such file or directory`,
			more: `CNI_NETNS is "/run/netns/none", which does not exist: the sandbox was removed meanwhile, or it is not a path on the host` + netnsAccepted},
		{name: "check, number for mtu", env: env("CHECK"), stdin: `{"name":"a","cniVersion":"0.4.0","pluginLogFile":"/dev/null","mtu":9001}`, code: 999, cause: cause.InvalidConfig,
			msg:  "check cmd: error loading config from args: error loading config from args: mtu is number, not string, at offset 67",
			more: `key "mtu" of the network configuration (a file in /etc/cni/net.d) is 9001; accepted is a string: "9001"`},
		{name: "status without daemon", env: env("STATUS"), stdin: withVersion("1.1.0"), code: 50, cause: cause.DaemonUnreachable, msg: "status cmd: ipamd does not answer",
			more: "there is no /nonexistent/cni.sock: ipamd has not started since the node booted (upstream's socket is /var/run/aws-node/ipamd.sock); " +
				"look at the aws-node pod of this node: kubectl -n kube-system get pods -l k8s-app=aws-node -o wide, and /var/log/aws-routed-eni/ipamd.log"},
		{name: "status, no ADD can succeed", env: env("STATUS"), stdin: `{"name":"a","cniVersion":"1.1.0","pluginLogFile":"/dev/null","vethPrefix":"toolong"}`, code: 50, cause: cause.InvalidConfig,
			msg:  "status cmd: error loading config from args: conf.VethPrefix can be at most 4 characters long",
			more: `key "vethPrefix" of the network configuration (a file in /etc/cni/net.d) is "toolong"; accepted is at most 4 characters`},
		{name: "status future", env: env("STATUS"), stdin: withVersion("1.2.0"), code: 1, cause: cause.InvalidConfig, msg: "plugin version does not allow STATUS"},
		{name: "status without path", env: map[string]string{"CNI_COMMAND": "STATUS"}, code: 4, cause: cause.InvalidRequest, msg: "required env variables [CNI_PATH] missing"},
		{name: "status old", env: env("STATUS"), stdin: conf, code: 1, cause: cause.InvalidConfig, msg: "config version does not allow STATUS"},
		{name: "gc", env: env("GC"), stdin: withVersion("1.1.0")},
		{name: "gc, nothing allocated", env: env("GC"), stdin: strings.Replace(withVersion("1.1.0"), "{", `{"cni.dev/valid-attachments":[],`, 1)},
		{name: "gc, no list", env: env("GC"), stdin: strings.Replace(withVersion("1.1.0"), "{", `{"cni.dev/valid-attachments":7,`, 1), code: 6, cause: cause.InvalidRequest,
			msg: "gc cmd: decoding valid attachments from network config: cni.dev/valid-attachments is number, not array, at offset 29"},
		{name: "gc future", env: env("GC"), stdin: withVersion("2.0.0"), code: 1, cause: cause.InvalidConfig, msg: "plugin version does not allow GC"},
		{name: "gc needs no sandbox", env: map[string]string{"CNI_COMMAND": "GC", "CNI_PATH": "/opt/cni/bin", "CNI_IFNAME": "a/b"}, stdin: withVersion("1.1.0")},
		{name: "gc old", env: env("GC"), stdin: withVersion("1.0.0"), code: 1, cause: cause.InvalidConfig, msg: "config version does not allow GC"},
		{name: "unknown command", env: env("JUMP"), stdin: conf, code: 4, cause: cause.InvalidRequest, msg: "unknown CNI_COMMAND: JUMP"},
		{name: "lower case", env: env("add"), stdin: conf, code: 4, cause: cause.InvalidRequest, msg: "unknown CNI_COMMAND: add"},
		{name: "nothing set", env: map[string]string{"CNI_COMMAND": "ADD"}, code: 4, cause: cause.InvalidRequest,
			msg: "required env variables [CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing"},
		{name: "del needs no netns", env: env("DEL", "CNI_NETNS", "", "CNI_PATH", ""), code: 4, cause: cause.InvalidRequest, msg: "required env variables [CNI_PATH] missing"},
		{name: "container id", env: env("ADD", "CNI_CONTAINERID", "a/b"), stdin: conf, code: 4, cause: cause.InvalidRequest, msg: "invalid characters in containerID", more: "a/b"},
		{name: "long interface", env: env("ADD", "CNI_IFNAME", "abcdefghijklmnop"), stdin: conf, code: 4, cause: cause.InvalidRequest, msg: "interface name is too long",
			more: "interface name should be less than 16 characters"},
		{name: "dots", env: env("DEL", "CNI_IFNAME", ".."), stdin: conf, code: 4, cause: cause.InvalidRequest, msg: "interface name is . or .."},
		{name: "slash", env: env("ADD", "CNI_IFNAME", "a/b"), stdin: conf, code: 4, cause: cause.InvalidRequest, msg: "interface name contains / or : or whitespace characters"},
		{name: "incompatible", env: env("ADD"), stdin: withVersion("0.5.0"), code: 1, cause: cause.InvalidConfig, msg: "incompatible CNI versions",
			more: `config is "0.5.0", plugin supports ["0.1.0" "0.2.0" "0.3.0" "0.3.1" "0.4.0" "1.0.0" "1.1.0"]`},
		{name: "version of the wrong type", env: env("ADD"), stdin: `{"name":"a","cniVersion":1}`, code: 6, cause: cause.InvalidConfig,
			msg:  "decoding version from network config: cniVersion is number, not string, at offset 25",
			more: `key "cniVersion" of the network configuration (a file in /etc/cni/net.d) is 1; accepted is a string: "1"`},
		{name: "no object", env: env("ADD"), stdin: `[1]`, code: 6, cause: cause.InvalidConfig,
			msg:  "error unmarshall network config: the configuration is array, not object, at offset 0",
			more: "the network configuration (a file in /etc/cni/net.d) is an array; accepted is an object"},
		{name: "broken JSON", env: env("ADD"), stdin: `{`, code: 6, cause: cause.InvalidConfig, msg: "error unmarshall network config: unexpected end of JSON input"},
		{name: "no name", env: env("ADD"), stdin: `{}`, code: 7, cause: cause.InvalidConfig, msg: "missing network name"},
		{name: "odd name", env: env("ADD"), stdin: `{"name":"a/b"}`, code: 7, cause: cause.InvalidConfig, msg: "invalid characters found in network name", more: "a/b"},
		{name: "number for mtu, ADD", env: env("ADD"), stdin: `{"name":"a","cniVersion":"0.4.0","mtu":9001}`, code: 999, cause: cause.InvalidConfig,
			msg:  "add cmd: error loading config from args: error loading config from args: mtu is number, not string, at offset 39",
			more: `key "mtu" of the network configuration (a file in /etc/cni/net.d) is 9001; accepted is a string: "9001"`},
		{name: "number for mtu, DEL", env: env("DEL"), stdin: `{"name":"a","cniVersion":"0.4.0","mtu":9001}`, code: 999, cause: cause.InvalidConfig,
			msg:  "del cmd: error loading config from args: error loading config from args: mtu is number, not string, at offset 39",
			more: `key "mtu" of the network configuration (a file in /etc/cni/net.d) is 9001; accepted is a string: "9001"`},
		{name: "annotations", env: env("ADD"), stdin: `{"name":"a","runtimeConfig":{"io.kubernetes.cri.pod-annotations":"x"}}`, code: 999, cause: cause.InvalidConfig,
			msg:  "add cmd: error loading config from args: error loading config from args: runtimeConfig.io.kubernetes.cri.pod-annotations is string, not object, at offset 65",
			more: `key "runtimeConfig.io.kubernetes.cri.pod-annotations" of the network configuration (a file in /etc/cni/net.d) is "x"; accepted is an object of strings`},
		{name: "long prefix", env: env("DEL"), stdin: `{"name":"a","vethPrefix":"` + strings.Repeat("é", 100) + `"}`, code: 999, cause: cause.InvalidConfig,
			msg: "del cmd: error loading config from args: conf.VethPrefix can be at most 4 characters long",
			more: `key "vethPrefix" of the network configuration (a file in /etc/cni/net.d) is "` + strings.Repeat("é", 63) +
				`... (202 bytes); accepted is at most 4 characters`},
		{name: "previous result, ADD", env: env("ADD"), stdin: `{"name":"a","prevResult":{"ips":[{"address":"x"}]}}`, code: 999, cause: cause.InvalidRequest,
			msg: "add cmd: error loading config from args: could not parse prevResult: invalid CIDR address: x"},
		{name: "args, DEL", env: env("DEL", "CNI_ARGS", "FOO"), stdin: conf, code: 999, cause: cause.InvalidRequest,
			msg:  `del cmd: failed to load k8s config from args: ARGS: invalid pair "FOO"`,
			more: `CNI_ARGS is "FOO"` + argsAccepted},
		{name: "args, ADD", env: env("ADD", "CNI_ARGS", "FOO=bar"), stdin: conf, code: 999, cause: cause.InvalidRequest,
			msg: `add cmd: failed to load k8s config from arg: ARGS: unknown args ["FOO=bar"]`, more: `CNI_ARGS is "FOO=bar"` + argsAccepted},
		{name: "no namespace", env: env("ADD"), stdin: conf, code: 999, cause: cause.NetnsGone,
			msg:  `add command: failed to setup network: SetupPodNetwork: failed to setup veth pair: failed to setup veth network: failed to Statfs "/run/netns/none": no such file or directory`,
			more: `CNI_NETNS is "/run/netns/none", which does not exist: the sandbox was removed meanwhile, or it is not a path on the host` + netnsAccepted},
		{name: "a file as namespace", env: env("ADD", "CNI_NETNS", file), stdin: conf, code: 999, cause: cause.InvalidRequest,
			msg: "add command: failed to setup network: SetupPodNetwork: failed to setup veth pair: failed to setup veth network: unknown FS magic on " +
				strconv.Quote(file) + ": " + magic(t, file),
			more: `CNI_NETNS is ` + strconv.Quote(file) + `, which is not a network namespace` + netnsAccepted},
		{name: "endless input", env: env("DEL"), stdin: strings.Repeat(" ", 16<<20+1), code: 5, cause: cause.InvalidConfig, msg: "error reading from stdin: more than 16 MiB",
			more: "the network configuration is a few KB, also with the previous result or a node's list of attachments"},
		{name: "long input", env: env("DEL"), stdin: conf + strings.Repeat(" ", 1<<20)},
		{name: "del without daemon", env: env("DEL"), stdin: conf},
		{name: "del, damaged previous result", env: env("DEL"), stdin: `{"name":"a","pluginLogFile":"/dev/null","prevResult":{"interfaces":5}}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			code, out, _ := run(row.env, row.stdin)
			want, wantCode := "", 0
			if row.code != 0 {
				want, wantCode = string(vpc.ErrorJSON(row.code, row.msg, row.cause, row.more)), 1
				if row.cause.Title() == "" {
					t.Errorf("cause %q has no title", row.cause)
				}
			}
			if diff := cmp.Diff(want, out); diff != "" || code != wantCode {
				t.Errorf("exit %d, output (-want +got):\n%s", code, diff)
			}
		})
	}
}

// TestReplacedSettings: invalid settings that upstream tolerates are logged.
func TestReplacedSettings(t *testing.T) {
	t.Parallel()
	const accepted = `has the unusable value "loose"; accepted: strict or standard; used: strict, which matters to pods with a branch ENI only`
	for stdin, want := range map[string][]string{
		`"vethPrefix":"eni"`:                {},
		`"mtu":"huge"`:                      {`Key "mtu" of the network configuration has the unusable value "huge"; accepted: 576 to 9001; used: 9001`},
		`"mtu":"575"`:                       {`Key "mtu" of the network configuration has the unusable value "575"; accepted: 576 to 9001; used: 9001`},
		`"mtu":"576"`:                       {},
		`"podSGEnforcingMode":"standard"`:   {},
		`"podSGEnforcingMode":"loose"`:      {`Key "podSGEnforcingMode" of the network configuration ` + accepted},
		`"pluginLogLevel":"warning"`:        {`Key "pluginLogLevel" of the network configuration has the unusable value "warning"; accepted: debug, info, warn, error or fatal; used: debug`},
		`"pluginLogFile":"Stdout"`:          {`Key "pluginLogFile" of the network configuration has the unusable value "Stdout"; accepted: a path or stderr; used: stderr, because standard output carries the result`},
		`"mtu":"","pluginLogLevel":"fatal"`: {},
	} {
		// The namespace does not exist, so the command ends early, with its log on stderr.
		_, _, log := run(env("ADD"), `{"name":"a",`+stdin+`}`)
		got := []string{}
		for line := range strings.Lines(log) {
			var l struct{ Level, Msg string }
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if l.Level == "warn" {
				got = append(got, l.Msg)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", stdin, diff)
		}
	}
}

func TestVersionAndAbout(t *testing.T) {
	t.Parallel()
	code, out, _ := run(map[string]string{"CNI_COMMAND": "VERSION"}, "not read")
	if code != 0 || out != recorded(t, "version.json") {
		t.Errorf("VERSION: exit %d, %s", code, out)
	}
	code, out, errOut := run(nil, "")
	if code != 0 || out != "" || errOut != "AWS CNI v9\nCNI protocol versions supported: "+libraryVersions+"\n" {
		t.Errorf("without a command: exit %d, stdout %q, stderr %q", code, out, errOut)
	}
}
