package e2e_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/testenv"
	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/node"
	"cnictl/testenv/node/agent"
)

// print returns a command's human-readable output.
func (c cnictl) print(command ...string) string {
	c.t.Helper()
	ctx := testenv.Context(c.t)
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(c.binaries, "cnictl"), append(command, "--targets", "worker="+c.address)...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("run cnictl %v: %v\n%s%s", command, err, &out, &errOut)
	}
	return out.String()
}

// TestConfig_ProblemsAreReported gives a daemon values that it cannot use as written. Each is
// logged, counted in the summary and shown by cnictl, and no credential is revealed.
func TestConfig_ProblemsAreReported(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	c := cnictl{l, n, "unix:" + filepath.Join(n.Dir, "i.sock")}
	l.start(n, map[string]string{
		"INTROSPECTION_BIND_ADDRESS": c.address,
		"AWS_VPC_K8S_CNI_LOG_FILE":   "/run/aws-node/ipamd.log",

		"WARM_IP_TARGET":                     "many",
		"IP_COOLDOWN_PERIOD":                 "30s",
		"AWS_VPC_K8S_CNI_RANDOMIZESNAT":      "random",
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": "10.9.0.0/16,fd00::/8",
		"MAX_ENI":                            "9", // an m5.large has three
		"ENABLE_NFTABLES":                    "true",

		"AWS_ACCESS_KEY_ID":     "AKIA" + secret,
		"AWS_SECRET_ACCESS_KEY": secret,
		"AWS_SESSION_TOKEN":     secret,
		"CLUSTER_ENDPOINT":      "https://me:" + secret + "@api.invalid",
		"HTTPS_PROXY":           "http://me:" + secret + "@127.0.0.1:1",
	})
	c.settled()
	want := map[string]introspect.ConfigRow{
		"WARM_IP_TARGET": {Declared: new("many"), Effective: "0", Source: "default",
			Problem: `WARM_IP_TARGET="many" cannot be used, it must be an integer ≥ 0; the default 0 is used`},
		"IP_COOLDOWN_PERIOD": {Declared: new("30s"), Effective: "30", Source: "default",
			Problem: `IP_COOLDOWN_PERIOD="30s" cannot be used, it must be an integer ≥ 0 (seconds); the default 30 is used`},
		"AWS_VPC_K8S_CNI_RANDOMIZESNAT": {Declared: new("random"), Effective: "prng", Source: "default",
			Problem: `AWS_VPC_K8S_CNI_RANDOMIZESNAT="random" cannot be used, it must be prng, hashrandom or none; the default prng is used`},
		"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": {Declared: new("10.9.0.0/16,fd00::/8"), Effective: "10.9.0.0/16", Source: "environment",
			Problem: `AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS="fd00::/8" is not an IPv4 CIDR; this entry is skipped`},
		"MAX_ENI": {Declared: new("9"), Effective: "3", Source: "derived",
			Problem: `MAX_ENI="9" exceeds what a network card of m5.large supports; the limit of the instance type, 3, applies`},
		"ENABLE_NFTABLES": {Declared: new("true"), Effective: "", Source: "default",
			Problem: `ENABLE_NFTABLES="true" is not read; no effect since v1.13.1; the backend is detected`},
	}

	o := one{l, n}
	log := o.read("/run/aws-node/ipamd.log")
	logged := map[string][]string{}
	for line := range strings.Lines(log) {
		var entry struct{ Level, Setting, Detail string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if entry.Setting != "" {
			logged[entry.Setting] = append(logged[entry.Setting], entry.Level+" "+entry.Detail)
		}
	}
	var doc introspect.NodeConfig
	if err := c.run(&doc, "node", "config", "worker"); err != nil {
		t.Fatal(err)
	}
	table := c.print("node", "config", "worker")
	rows := map[string]introspect.ConfigRow{}
	for _, row := range doc.Items {
		if row.Problem != "" {
			rows[row.Name] = row
		}
	}
	if got, named := slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(want)); !slices.Equal(got, named) {
		t.Errorf("problems with %q, want %q", got, named)
	}
	for name, w := range want {
		got := rows[name]
		if got.Declared == nil || *got.Declared != *w.Declared || got.Effective != w.Effective || got.Source != w.Source || got.Problem != w.Problem {
			t.Errorf("%s: %+v\nwant %+v", name, got, w)
		}
		if lines := logged[name]; len(lines) != 1 || lines[0] != "warn "+w.Problem {
			t.Errorf("%s: logged %q, want once: %q", name, lines, w.Problem)
		}
		if at := slices.IndexFunc(slices.Collect(strings.Lines(table)), func(line string) bool {
			return strings.HasPrefix(line, name) && strings.Contains(line, *w.Declared) && strings.Contains(line, w.Problem)
		}); at < 0 {
			t.Errorf("%s: not in the table\n%s", name, table)
		}
	}
	var summary document.NodeIPAM
	if err := c.run(&summary, "node", "show", "worker"); err != nil {
		t.Fatal(err)
	}
	if got := *summary.Summary.ConfigProblems; got != len(want) {
		t.Errorf("the summary counts %d problems, want %d", got, len(want))
	}

	shown := map[string]string{}
	for _, row := range doc.Items {
		if row.Declared != nil {
			shown[row.Name] = *row.Declared + " " + row.Effective
		}
	}
	for name, want := range map[string]string{
		"AWS_SECRET_ACCESS_KEY": "(hidden) (hidden)",
		"AWS_SESSION_TOKEN":     "(hidden) (hidden)",
		"CLUSTER_ENDPOINT":      "https://(hidden)@api.invalid https://(hidden)@api.invalid",
		"HTTPS_PROXY":           "http://(hidden)@127.0.0.1:1 http://(hidden)@127.0.0.1:1",
	} {
		if shown[name] != want {
			t.Errorf("%s is shown as %q, want %q", name, shown[name], want)
		}
	}
	outputs := map[string]string{"log": log, "node config": table, "node config -o json": c.print("node", "config", "worker", "-o", "json")}
	maps.Copy(outputs, n.Logs())
	for where, text := range outputs {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows a credential:\n%s", where, text)
		}
	}
}

// TestConfig_Refused starts daemons with settings that they must refuse: each exits at once,
// reports why and what would be accepted, and changes nothing.
func TestConfig_Refused(t *testing.T) {
	t.Parallel()
	type env = map[string]string
	const validation = "ipamd: failed to validate configuration: "
	type row struct {
		env  env
		want string
	}
	rows := map[string]row{
		"no address family":           {env{"ENABLE_IPv4": ""}, validation + "ENABLE_IPv4 and ENABLE_IPv6 are both false, but exactly one must be true; the daemon does not start"},
		"both address families":       {env{"ENABLE_IPv6": "true"}, "ENABLE_IPv4 and ENABLE_IPv6 are both true, but exactly one must be; the daemon does not start"},
		"IPv6 without prefixes":       {env{"ENABLE_IPv4": "", "ENABLE_IPv6": "true"}, "ENABLE_PREFIX_DELEGATION must be true while ENABLE_IPv6 is true"},
		"IPv6 with custom networking": {env{"ENABLE_IPv4": "", "ENABLE_IPv6": "true", "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}, "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG must be false while ENABLE_IPv6 is true"},
		"network policy mode":         {env{"NETWORK_POLICY_ENFORCING_MODE": "loose"}, "invalid Network policy mode, supported modes: none, strict, standard"},
		"pod security group mode":     {env{"ENABLE_POD_ENI": "true", "POD_SECURITY_GROUP_ENFORCING_MODE": "lax"}, "POD_SECURITY_GROUP_ENFORCING_MODE must be set to either 'strict' or 'standard'"},
		"MTU, no number":              {env{"AWS_VPC_ENI_MTU": "big"}, "AWS_VPC_ENI_MTU MUST be a valid integer. big is invalid"},
		"MTU, too small":              {env{"AWS_VPC_ENI_MTU": "575"}, "AWS_VPC_ENI_MTU cannot be less than 576 or greater than 9001 in IPv4"},
		"MTU of pods":                 {env{"POD_MTU": "9002"}, "POD_MTU cannot be less than 576 or greater than 9001 in IPv4"},
		"link prefix, long":           {env{"AWS_VPC_K8S_CNI_VETHPREFIX": "abcde"}, "AWS_VPC_K8S_CNI_VETHPREFIX cannot be longer than 4 characters"},
		"link prefix, reserved":       {env{"AWS_VPC_K8S_CNI_VETHPREFIX": "vlan"}, "AWS_VPC_K8S_CNI_VETHPREFIX cannot be set to reserved values 'eth', 'vlan', or 'lo'"},
		"plugin log":                  {env{"AWS_VPC_K8S_PLUGIN_LOG_FILE": "Stdout"}, "AWS_VPC_K8S_PLUGIN_LOG_FILE cannot be set to stdout"},
	}

	l := newLab(t, fakeaws.Options{})
	i, err := l.world.AddInstance(fakeaws.InstanceSpec{Type: "m5.large", SubnetID: l.subnet.ID})
	if err != nil {
		t.Fatal(err)
	}
	n := l.node(i.ID)
	before := one{l, n}.kernel()
	testenv.Eventually(l.t, "an address of IPv6 that is no double", func() bool {
		before = one{l, n}.kernel()
		return !strings.Contains(before.Links, "tentative") && strings.Contains(before.Routes, "local fe80::") // the routes are read first
	})
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			vars := n.DaemonEnv()
			maps.Copy(vars, row.env)
			vars["AWS_VPC_K8S_CNI_LOG_FILE"] = "/run/aws-node/refused.log"
			var list []string
			for k, v := range vars {
				if v != "" {
					list = append(list, k+"="+v)
				}
			}
			r, err := n.Exec(agent.Cmd{Argv: []string{filepath.Join(l.binaries, node.DaemonBinary)}, Env: list, Timeout: testenv.Left(t)})
			if err != nil {
				t.Fatal(err)
			}
			if stderr := string(r.Stderr); r.Code != 1 || !strings.Contains(stderr, validation) || !strings.Contains(stderr, row.want) {
				t.Errorf("status %d, want 1 with %q; stderr:\n%s", r.Code, row.want, stderr)
			}
		})
	}
	var logged strings.Builder
	for line := range strings.Lines(one{l, n}.read("/run/aws-node/refused.log")) {
		var entry struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if entry.Level == "error" {
			logged.WriteString(entry.Msg + "\n")
		}
	}
	for name, row := range rows {
		if !strings.Contains(logged.String(), row.want) {
			t.Errorf("%s: the log does not say why; errors in it:\n%s", name, &logged)
		}
	}
	if after := (one{l, n}).kernel(); after != before {
		t.Errorf("the kernel has changed from\n%+v to\n%+v", before, after)
	}
	if enis := l.world.ENIsOf(i.ID); len(enis) != 1 || len(enis[0].SecondaryIPs) > 0 {
		t.Errorf("EC2 has changed: %+v", enis)
	}
}
