package netconf

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/api/netnames"
)

func TestParseEgress(t *testing.T) {
	t.Parallel()
	const shipped = `{"cniVersion":"0.4.0","name":"aws-cni","type":"egress-cni","mtu":"9001","enabled":"false","randomizeSNAT":"prng","nodeIP":"",` +
		`"ipam":{"type":"host-local","ranges":[[{"subnet":"fd00::ac:00/118"}]],"routes":[{"dst":"::/0"}],"dataDir":"/run/cni/v4pd/egress-v6-ipam"},` +
		`"pluginLogFile":"/var/log/aws-routed-eni/egress-v6-plugin.log","pluginLogLevel":"Debug","prevResult":{"ips":[]}}`
	got, err := ParseEgress([]byte(shipped))
	want := EgressConf{
		CNIVersion: "0.4.0", Name: "aws-cni", Type: "egress-cni", MTU: "9001", Enabled: "false", RandomizeSNAT: "prng",
		IPAM:          EgressIPAM{Type: "host-local", DataDir: "/run/cni/v4pd/egress-v6-ipam"},
		PluginLogFile: "/var/log/aws-routed-eni/egress-v6-plugin.log", PluginLogLevel: "Debug", RawPrevResult: Raw(`{"ips":[]}`),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, row := range []struct {
		stdin string
		kind  Kind
		says  string
	}{
		{`{`, NotJSON, "error unmarshall network config: unexpected end of JSON input"},
		{`[]`, NotJSON, "error unmarshall network config: the configuration is array, not object, at offset 0"},
		{`{"name":5}`, NotJSON, "error unmarshall network config: name is number, not string, at offset 8"},
		{`null`, NoName, "missing network name"},
		{`{"name":"a/b"}`, BadName, "invalid characters found in network name"},
		{`{"name":"a","cniVersion":1}`, BadVersion, "decoding version from network config: cniVersion is number, not string, at offset 25"},
		{`{"name":"a","mtu":9001}`, BadSettings, "mtu is number, not string, at offset 18"},
		{`{"name":"a","enabled":true}`, BadSettings, "enabled is bool, not string, at offset 22"},
		{`{"name":"a","ipam":[]}`, BadSettings, "ipam is array, not object, at offset 19"},
		{`{"name":"a","ipam":{"dataDir":1}}`, BadSettings, "ipam.dataDir is number, not string, at offset 30"},
		{`{"name":"a","prevResult":[]}`, BadSettings, "prevResult is array, not object, at offset 25"},
	} {
		_, err := ParseEgress([]byte(row.stdin))
		var bad *Error
		if !errors.As(err, &bad) || bad.Kind != row.kind || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want kind %d and %q", row.stdin, err, row.kind, row.says)
		}
	}
	for mtu, ok := range map[string]bool{"9001": true, "-1": true, "": false, "9001 ": false, "x": false} {
		conf := EgressConf{MTU: mtu}
		if n, err := conf.LinkMTU(); (err == nil) != ok {
			t.Errorf("MTU %q: %d, %v", mtu, n, err)
		}
	}
}

// FuzzParseEgress: we accept exactly what encoding/json accepts, with the same values.
func FuzzParseEgress(f *testing.F) {
	f.Add([]byte(`{"cniVersion":"1.1.0","name":"a","mtu":"1","enabled":"true","ipam":{"dataDir":"/x","ranges":[[{}]]},"prevResult":{"a":[1]}}`))
	f.Add([]byte(`{"NAME":"a","Mtu":null,"ipam":null,"\u006eodeIP":"::1","prevResult":null}`))
	f.Add([]byte(`{"name":"a","ipam":{"datadir":1}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var want struct {
			CNIVersion, Name, Type, MTU, Enabled, RandomizeSNAT, NodeIP, PluginLogFile, PluginLogLevel string

			IPAM       EgressIPAM
			PrevResult map[string]any
		}
		wantErr := json.Unmarshal(in, &want)
		got, err := ParseEgress(in)
		if err == nil != (wantErr == nil && netnames.ValidName(want.Name)) {
			t.Fatalf("%v, encoding/json %v, name %q", err, wantErr, want.Name)
		}
		if err != nil {
			return
		}
		var prev map[string]any
		if len(got.RawPrevResult) > 0 {
			if err := json.Unmarshal(got.RawPrevResult, &prev); err != nil {
				t.Fatal(err)
			}
		}
		have := [...]string{got.CNIVersion, got.Name, got.Type, got.MTU, got.Enabled, got.RandomizeSNAT, got.NodeIP, got.PluginLogFile, got.PluginLogLevel, got.IPAM.Type, got.IPAM.DataDir}
		wish := [...]string{want.CNIVersion, want.Name, want.Type, want.MTU, want.Enabled, want.RandomizeSNAT, want.NodeIP, want.PluginLogFile, want.PluginLogLevel, want.IPAM.Type, want.IPAM.DataDir}
		if diff := cmp.Diff(wish, have); diff != "" {
			t.Errorf("(-encoding/json +ours):\n%s", diff)
		}
	})
}
