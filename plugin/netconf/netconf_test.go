package netconf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse_Recorded(t *testing.T) {
	t.Parallel()
	in := read(t, "stdin.json")
	got, err := Parse(in)
	if err != nil {
		t.Fatal(err)
	}
	want := NetConf{
		CNIVersion: "0.4.0", Name: "aws-cni", Type: "aws-cni", VethPrefix: "eni", MTU: "9001",
		PodSGEnforcingMode: "strict", PluginLogFile: "/var/log/aws-routed-eni/plugin.log", PluginLogLevel: "DEBUG",
		RuntimeConfig: RuntimeConfig{PodAnnotations: map[string]string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParse_Refused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		in   string
		kind Kind
		want string
	}{
		{``, NotJSON, `error unmarshall network config: unexpected end of JSON input`},
		{`{"name":"aws-cni"`, NotJSON, `error unmarshall network config: unexpected end of JSON input`},
		{`{"name":tru}`, NotJSON, `error unmarshall network config: invalid character '}' at offset 11`},
		{"{\"name\":\"a\n\"}", NotJSON, `error unmarshall network config: invalid character '\n' at offset 10`},
		{`[]`, NotJSON, `error unmarshall network config: the configuration is array, not object, at offset 0`},
		{`{"name":1}`, NotJSON, `error unmarshall network config: name is number, not string, at offset 8`},
		{`{}`, NoName, `missing network name`},
		{`{"mtu":1}`, NoName, `missing network name`},
		{`{"name":"a b"}`, BadName, `invalid characters found in network name`},
		{`{"name":"-a"}`, BadName, `invalid characters found in network name`},
		{`{"name":"a","cniVersion":4}`, BadVersion, `decoding version from network config: cniVersion is number, not string, at offset 25`},
		{`{"name":"a","mtu":9001}`, BadSettings, `error loading config from args: mtu is number, not string, at offset 18`},
		{`{"name":"a","vethPrefix":"abcde"}`, BadSettings, `conf.VethPrefix can be at most 4 characters long`},
	} {
		_, err := Parse([]byte(row.in))
		var refused *Error
		if !errors.As(err, &refused) || refused.Kind != row.kind || err.Error() != row.want {
			t.Errorf("%s: got %v\nwant kind %d, %s", row.in, err, row.kind, row.want)
		}
	}
}

func TestParse_Lenient(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		in   string
		want NetConf
	}{
		{`{"name":"a"}`, NetConf{Name: "a", VethPrefix: "eni", MTU: "9001", PodSGEnforcingMode: "strict"}},
		{`{"name":"a","vethPrefix":"","mtu":"x","more":[1,{"b":null}]}`, NetConf{Name: "a", MTU: "x", PodSGEnforcingMode: "strict"}},
		{`{"NAME":"a","Mtu":"1500"}`, NetConf{Name: "a", VethPrefix: "eni", MTU: "1500", PodSGEnforcingMode: "strict"}},
		{`{"name":"a","name":"b","vethPrefix":null}`, NetConf{Name: "b", VethPrefix: "eni", MTU: "9001", PodSGEnforcingMode: "strict"}},
	} {
		got, err := Parse([]byte(row.in))
		if err != nil {
			t.Errorf("%s: %v", row.in, err)
			continue
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", row.in, diff)
		}
	}
}

func TestPodMTU(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		mtu int
		ok  bool
	}{
		"9001": {9001, true}, "576": {576, true}, "1500": {1500, true},
		"575": {9001, false}, "9002": {9001, false}, "": {9001, false}, "1500.0": {9001, false}, "-1": {9001, false},
	} {
		mtu, ok := (&NetConf{MTU: in}).PodMTU()
		if mtu != want.mtu || ok != want.ok {
			t.Errorf("%q: %d, %t", in, mtu, ok)
		}
	}
}

func TestMultiNIC(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{
		`{}`: false,
		`{"k8s.amazonaws.com/nicConfig":"multi-nic-attachment"}`:                               true,
		`{"k8s.amazonaws.com/nicConfig":"Multi-NIC-attachment"}`:                               false,
		`{"x":"{\"a\":1}\n","k8s.amazonaws.com/nicConfig":"multi-nic-attachment"}`:             true,
		`{"k8s.amazonaws.com\/nicConfig":"multi-nic-attachment","y":"\u00e4","z":"multi-nic"}`: true,
	} {
		conf, err := Parse([]byte(`{"name":"a","runtimeConfig":{"io.kubernetes.cri.pod-annotations":` + in + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := conf.MultiNIC(); got != want {
			t.Errorf("%s: %t", in, got)
		}
	}
}

func prevResult(t *testing.T, result string) (*PrevResult, error) {
	t.Helper()
	conf, err := Parse([]byte(`{"name":"a","prevResult":` + result + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return conf.PrevResult()
}

func TestPrevResult_Recorded(t *testing.T) {
	t.Parallel()
	raw := read(t, "result-0.4.0.json")
	got, err := prevResult(t, string(raw))
	if err != nil {
		t.Fatal(err)
	}
	one := 1
	want := &PrevResult{
		Interfaces: []Interface{
			{Name: "eni0761ccbeace"},
			{Name: "eth0", MAC: "2", Sandbox: "/run/netns/rec2"},
			{Name: "dummy0761ccbeace", MAC: "0", Sandbox: "1"},
		},
		IPs: []IP{{Interface: &one, Address: "10.0.0.21/32"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if i := got.Named("eth0"); i != 1 {
		t.Errorf("eth0 is interface %d", i)
	}
	if i := got.Named("eth1"); i != -1 {
		t.Errorf("eth1 is interface %d", i)
	}
	if diff := cmp.Diff([]string{"10.0.0.21"}, text(got.AddressesOf(1))); diff != "" {
		t.Error(diff)
	}
	if got := got.AddressesOf(0); len(got) != 0 {
		t.Errorf("addresses of the host end: %v", got)
	}
}

func text(list []netip.Addr) (out []string) {
	for _, a := range list {
		out = append(out, a.String())
	}
	return out
}

func TestPrevResult_Odd(t *testing.T) {
	t.Parallel()
	for in, wantErr := range map[string]bool{
		`null`: false,
		`{}`:   false,
		`{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/32"},"dns":{}}`:         false,
		`{"interfaces":[{"name":"a","mtu":1500,"socketPath":"x"}],"ips":[]}`: false,
		`[]`:                               true,
		`"x"`:                              true,
		`{"interfaces":[{"mac":5}]}`:       true,
		`{"ips":[{"address":"10.0.0.1"}]}`: true,
		`{"ips":[{}]}`:                     true,
		`{"ips":[{"interface":1.5,"address":"10.0.0.1/32"}]}`: true,
	} {
		if got, err := prevResult(t, in); (err != nil) != wantErr {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
}

func TestConflist_RoundTrip(t *testing.T) {
	t.Parallel()
	const in = `{"cniVersion":"0.4.0","name":"aws-cni","disableCheck":true,"plugins":[{"type":"aws-cni","x":[1, 2]},{"type":"portmap"}]}`
	var list Conflist
	if err := json.Unmarshal([]byte(in), &list); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(in, "1, 2", "1,2"); string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

func seeds(f *testing.F) {
	f.Helper()
	f.Add(read(f, "stdin.json"))
	f.Add([]byte(`{"name":"a","prevResult":` + string(read(f, "result-0.4.0.json")) + `}`))
	for _, s := range []string{
		`{}`, ``, `[]`, `null`, `{"name":"a","NAME":"b"}`, `{"name":"a","ſname":"b"}`, `{"name":"\u0061"}`,
		`{"name":"a","mtu":1}`, "{\"name\":\"\xff\"}", `{"name":"a",}`, `{"name":"a"} x`, `{"name":"a","x":01}`,
		`{"name":"a","runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"a":"\"\\\/\b\f\n\r\t"},"x":-1e9}}`,
		`{"name":"a","runtimeConfig":null,"capabilities":{"a":true}}`, `{"name":"a","x":[[[[{}]]],-5,true,false,null]}`,
		`{"name":"a","runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"a":"1","a":"2"}}}`,
		`{"name":"a","runtimeConfig":5}`, `{"name":"a","runtimeConfig":{"io.kubernetes.cri.pod-annotations":[]}}`,
		`{"name":"a","runtimeConfig":{"io.kubernetes.cri.pod-annotations":{"a":5,"b":null}}}`,
		`{"name":"a","capabilities":{"x":null,"y":1}}`, `{"name":"a","capabilities":"x"}`, `{"name":"a","capabilities":null}`,
		`{"name":"a","mtu":[],"vethPrefix":{},"cniVersion":true}`, `{"name":{},"NAME":1,"name":"a"}`, `"x"`, `5`, `true`,
		`{"name":"a","mtu":"\ud83d\ude00\ud800x\udc00"}`, "{\"name\":\"a\",\"mtu\":\"\xc3\x28\"}", `{"name":"a","mtu":"\q"}`, `{"name":"a","mtu":"\u00g0"}`,
		`{"name":"a" "b"}`, `{"name" "a"}`, `{name:1}`, `[1 2]`, `[1,]`, `{"a":-}`, `{"a":1.}`, `{"a":1e}`, `{"a":1e+}`, `{"a":tru}`, `{"a":nul`,
		"{\"a\":\"\n\"}", `{"a":1}}`, `{"a":'x'}`, `{"a":01}`, `{"a":.5}`, "\x00", "{\"a\":\x7f}", "{\"a\":\xff}", `{"name":"a","prevResult":null}`,
	} {
		f.Add([]byte(s))
	}
}

// parseByLibrary is Parse with encoding/json, in the same steps as skel and upstream's plugin.
func parseByLibrary(stdin []byte) (NetConf, error) {
	var named struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(stdin, &named); err != nil {
		return NetConf{}, &Error{Kind: NotJSON, Err: fmt.Errorf("error unmarshall network config: %w", err)}
	}
	conf := defaults()
	confErr := json.Unmarshal(stdin, &conf)
	var versioned struct {
		CNIVersion string `json:"cniVersion"`
	}
	versionErr := json.Unmarshal(stdin, &versioned)
	switch {
	case conf.Name == "":
		return conf, &Error{Kind: NoName, Err: errors.New("missing network name")}
	case !regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`).MatchString(conf.Name):
		return conf, &Error{Kind: BadName, Name: conf.Name, Err: errors.New("invalid characters found in network name")}
	case versionErr != nil:
		return conf, &Error{Kind: BadVersion, Err: fmt.Errorf("decoding version from network config: %w", versionErr)}
	case confErr != nil:
		return conf, &Error{Kind: BadSettings, Err: fmt.Errorf("error loading config from args: %w", confErr)}
	case len(conf.VethPrefix) > 4:
		return conf, &Error{Kind: BadSettings, Err: ErrVethPrefix}
	}
	return conf, nil
}

// FuzzParse: we parse to the same values as encoding/json, or fail with the same kind of error.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		want, wantErr := parseByLibrary(in)
		got, err := Parse(in)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v\nencoding/json %v", err, wantErr)
		}
		var kind, wantKind *Error
		if errors.As(err, &kind) && errors.As(wantErr, &wantKind) && kind.Kind != wantKind.Kind {
			t.Fatalf("kind %d, want %d: %v", kind.Kind, wantKind.Kind, err)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("(-encoding/json +ours):\n%s", diff)
		}
		got.PodMTU()
		got.MultiNIC()
	})
}

// repeatsKeys reports whether a list may occur twice. encoding/json then decodes the second
// into the elements of the first, which mixes the members of both.
func repeatsKeys(in []byte) bool {
	low := bytes.ToLower(in)
	return bytes.ContainsRune(in, '\\') || bytes.ContainsRune(in, 'ſ') ||
		bytes.Count(low, []byte(`"interfaces"`)) > 1 || bytes.Count(low, []byte(`"ips"`)) > 1
}

// FuzzPrevResult does the same for previous results, except for error texts.
func FuzzPrevResult(f *testing.F) {
	f.Add(read(f, "result-0.4.0.json"))
	for _, s := range []string{
		`{}`, `null`, `{"interfaces":[{}],"ips":[{"interface":0,"address":"10.0.0.1/32"}]}`,
		`{"ips":[{"interface":-1,"address":"x"}]}`, `{"interfaces":null}`, `{"ips":[{"interface":1.5,"address":"10.0.0.1/32"}]}`,
		`{"Interfaces":[]}`, `{"interfaces":[{"name":"a","Name":"b"}]}`, `{"ips":[],"routes":[{"dst":"0.0.0.0/0"}],"dns":{"x":[1]}}`,
		`[]`, `{"ips":[null]}`, `{"interfaces":[null,{"name":null,"mac":"\u00e4\ud83d\ude00\ud800"}]}`, `{"ips":[{"interface":99999999999999999999,"address":"::/0"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var want PrevResult
		wantErr := json.Unmarshal(in, &want)
		for _, ip := range want.IPs {
			if _, err := netip.ParsePrefix(ip.Address); err != nil && wantErr == nil {
				wantErr = err
			}
		}
		conf := NetConf{RawPrevResult: in}
		got, err := conf.PrevResult()
		if len(in) == 0 || string(in) == "null" {
			if got != nil || err != nil {
				t.Fatalf("%v, %v", got, err)
			}
			return
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("error %v, encoding/json %v", err, wantErr)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" && !repeatsKeys(in) {
			t.Fatalf("(-encoding/json +ours):\n%s", diff)
		}
		for i := range got.Interfaces {
			got.AddressesOf(i)
		}
		got.Named("eth0")
	})
}
