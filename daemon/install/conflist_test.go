package install_test

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/install"
	"cnictl/plugin/netconf"
	"cnictl/testenv/text/golden"
)

func render(t *testing.T, template string, s install.Settings) []byte {
	t.Helper()
	got, err := install.Conflist(template, s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := libcni.NetworkConfFromBytes(got); err != nil {
		t.Fatalf("the CNI library does not take it: %v\n%s", err, got)
	}
	return got
}

// TestConflist checks the files for the manifest's settings against golden files.
func TestConflist(t *testing.T) {
	t.Parallel()
	change := func(ipv6 bool, f func(*install.Settings)) install.Settings {
		s := install.Defaults(ipv6)
		f(&s)
		return s
	}
	for name, s := range map[string]install.Settings{
		"ipv4.conflist": install.Defaults(false),
		"ipv6.conflist": change(true, func(s *install.Settings) { s.Egress.NodeIP = netip.MustParseAddr("192.168.3.4") }),
		"ipv4-egress.conflist": change(false, func(s *install.Settings) {
			s.Egress.Enabled, s.Egress.NodeIP = true, netip.MustParseAddr("2001:db8::7")
		}),
		"ipv4-without-egress.conflist": change(false, func(s *install.Settings) { s.OmitEgress = true }),
		"ipv4-versions.conflist":       change(false, func(s *install.Settings) { s.CNIVersions = install.AllCNIVersions() }),
		"ipv4-chained.conflist":        change(false, func(s *install.Settings) { s.Bandwidth, s.DisablePodV6 = true, true }),
		"ipv4-all.conflist": change(false, func(s *install.Settings) {
			s.Bandwidth, s.DisablePodV6, s.OmitEgress, s.CNIVersions = true, true, true, install.AllCNIVersions()
		}),
	} {
		golden.Check(t, name, render(t, install.Template, s))
	}
}

// TestConflist_AsSpecified compares with upstream's conflist, key by key, for a node of an
// IPv4 cluster with all plugins.
func TestConflist_AsSpecified(t *testing.T) {
	t.Parallel()
	s := install.Defaults(false)
	s.Bandwidth, s.DisablePodV6 = true, true
	var got any
	if err := json.Unmarshal(render(t, install.Template, s), &got); err != nil {
		t.Fatal(err)
	}
	type object = map[string]any
	want := any(object{
		"cniVersion": "0.4.0", "name": "aws-cni", "disableCheck": true,
		"plugins": []any{
			object{
				"type": "aws-cni", "name": "aws-cni", "vethPrefix": "eni", "mtu": "9001", "podSGEnforcingMode": "strict",
				"pluginLogFile": "/var/log/aws-routed-eni/plugin.log", "pluginLogLevel": "Debug",
				"capabilities": object{"io.kubernetes.cri.pod-annotations": true},
			},
			object{
				"type": "egress-cni", "name": "egress-cni", "mtu": "9001", "enabled": "false", "randomizeSNAT": "prng", "nodeIP": "",
				"ipam": object{
					"type": "host-local", "ranges": []any{[]any{object{"subnet": "fd00::ac:00/118"}}},
					"routes": []any{object{"dst": "::/0"}}, "dataDir": "/run/cni/v4pd/egress-v6-ipam",
				},
				"pluginLogFile": "/var/log/aws-routed-eni/egress-v6-plugin.log", "pluginLogLevel": "Debug",
			},
			object{"type": "portmap", "capabilities": object{"portMappings": true}, "snat": true},
			object{"type": "bandwidth", "capabilities": object{"bandwidth": true}},
			object{"type": "tuning", "sysctl": object{
				"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1", "net.ipv6.conf.lo.disable_ipv6": "1",
			}},
		},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-specified +rendered):\n%s", diff)
	}
}

// TestConflist_ReadByThePlugin: aws-cni can read the rendered file.
func TestConflist_ReadByThePlugin(t *testing.T) {
	t.Parallel()
	s := install.Defaults(false)
	s.VethPrefix, s.MTU, s.PodSGEnforcingMode, s.PluginLogFile, s.PluginLogLevel = "abc", "1500", "standard", "stderr", "ERROR"
	list, err := libcni.NetworkConfFromBytes(render(t, install.Template, s))
	if err != nil {
		t.Fatal(err)
	}
	conf, err := netconf.Parse(list.Plugins[0].Bytes)
	if err != nil {
		t.Fatal(err)
	}
	got := []string{conf.Name, conf.Type, conf.VethPrefix, conf.MTU, conf.PodSGEnforcingMode, conf.PluginLogFile, conf.PluginLogLevel}
	if diff := cmp.Diff([]string{"aws-cni", "aws-cni", "abc", "1500", "standard", "stderr", "ERROR"}, got); diff != "" {
		t.Error(diff)
	}
	if !conf.Capabilities[netconf.AnnotationCapability] || list.CNIVersion != "0.4.0" || !list.DisableCheck {
		t.Errorf("capabilities %v, version %s, disableCheck %t", conf.Capabilities, list.CNIVersion, list.DisableCheck)
	}
}

// TestConflist_UsersTemplate: a user's template keeps its content, order and white space.
func TestConflist_UsersTemplate(t *testing.T) {
	t.Parallel()
	all := install.Defaults(false)
	all.Bandwidth, all.OmitEgress, all.CNIVersions = true, true, []string{"1.0.0"}
	const added = `{
      "type": "bandwidth",
      "capabilities": {"bandwidth": true}
    }`
	for _, row := range []struct {
		name, template, want string
		settings             install.Settings
	}{
		{"nothing to do", "{\"name\" :\t\"x\", \"plugins\":[ {\"type\":\"a\" , \"b\": 1.0e3} ], \"z\": {}}\n",
			"{\"name\" :\t\"x\", \"plugins\":[ {\"type\":\"a\" , \"b\": 1.0e3} ], \"z\": {}}\n", install.Defaults(false)},
		{"one line", `{"name":"x","cniVersion":"0.4.0","plugins":[{"type":"aws-cni","new":[1]},{"type":"egress-cni","enabled":"false"}],"mine":{"a":1}}`,
			`{"name":"x","cniVersion":"0.4.0", "cniVersions": ["1.0.0"],"plugins":[{"type":"aws-cni","new":[1]},` + "\n    " + added + `],"mine":{"a":1}}`, all},
		{"versions behind the plugins", "{\n\t\"plugins\": [\n\t\t{\"type\": \"egress-cni\"},\n\t\t{\"type\": \"aws-cni\"}\n\t],\n\t\"name\": \"x\",\n\t\"cniVersion\": \"0.4.0\"\n}",
			"{\n\t\"plugins\": [\n\t\t{\"type\": \"aws-cni\"},\n\t\t" + strings.ReplaceAll(added, "\n    ", "\n\t\t") + "\n\t],\n\t\"name\": \"x\",\n\t\"cniVersion\": \"0.4.0\",\n\t\"cniVersions\": [\"1.0.0\"]\n}", all},
		{"versions of the user's", `{"name":"x","cniVersions":["0.4.0"],"plugins":[{"type":"a","enabled":{}}]}`,
			`{"name":"x","cniVersions":["1.0.0"],"plugins":[{"type":"a","enabled":{}},` + "\n    " + added + `]}`, all},
		{"no version", `{"name":"x","plugins":[{"type":"a"}]}`,
			`{"cniVersions": ["1.0.0"], "name":"x","plugins":[{"type":"a"},` + "\n    " + added + `]}`, all},
		{"escaped key", `{"\u0063niVersion":"0.4.0","name":"x","plugins":[{"type":"a"}]}`,
			`{"\u0063niVersion":"0.4.0", "cniVersions": ["1.0.0"],"name":"x","plugins":[{"type":"a"},` + "\n    " + added + `]}`, all},
	} {
		if diff := cmp.Diff(row.want, string(render(t, row.template, row.settings))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.name, diff)
		}
	}
}

func TestConflist_Refused(t *testing.T) {
	t.Parallel()
	chained := install.Defaults(false)
	chained.Bandwidth = true
	quote := install.Defaults(false)
	quote.PluginLogFile = `"`
	for _, row := range []struct {
		template string
		settings install.Settings
		says     string
	}{
		{install.Template, quote, "is not a valid json object, error: invalid character"},
		{``, install.Defaults(false), " is not a valid json object, error: unexpected end of JSON input"},
		{`[]`, chained, "change conflist: the template is not a JSON object"},
		{`{"name":"x"}`, chained, `change conflist: the template has no list "plugins"`},
		{`{"plugins":{}}`, chained, `change conflist: "plugins" of the template is not a list`},
		{`{"plugins":[7]}`, chained, "change conflist: plugin 0 of the template: json: cannot unmarshal number"},
	} {
		if got, err := install.Conflist(row.template, row.settings); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %s, %v; want an error with %q", row.template, got, err, row.says)
		}
	}
}

// FuzzConflistTemplate: any template results in an error, or in JSON that differs only in
// the intended changes.
func FuzzConflistTemplate(f *testing.F) {
	f.Add(install.Template)
	f.Add(`{"plugins":[],"cniVersion":1,"plugins":[{"type":"egress-cni"},{"enabled":[]}]}`)
	f.Add(`{"\u0063niVersions":null,"plugins":[ {} ]}`)
	f.Add(`{"cniVersions":["1.0.0"],"\u0063niVerSions":null,"plugins":[{}]}`)
	f.Fuzz(func(t *testing.T, template string) {
		s := install.Defaults(false)
		s.Bandwidth, s.CNIVersions = true, install.AllCNIVersions()
		got, err := install.Conflist(template, s)
		if err != nil {
			return
		}
		// Keys as runtimes read them: case-sensitive, and the last duplicate wins (libcni
		// decodes a map).
		var list map[string]json.RawMessage
		if err := json.Unmarshal(got, &list); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		var versions []string
		if err := json.Unmarshal(list["cniVersions"], &versions); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if diff := cmp.Diff(install.AllCNIVersions(), versions); diff != "" {
			t.Errorf("%s\n%s", got, diff)
		}
	})
}
