package egress_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/google/go-cmp/cmp"

	rules "cnictl/daemon/hostnet/egress"
	"cnictl/daemon/netstate"
	"cnictl/plugin/egress"
	"cnictl/testenv/text/golden"
)

var versions = []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}

var pair = rules.Pair{
	Host: netstate.End{Name: "veth0a1b2c3d", MAC: netstate.MAC{0x0a, 0, 0, 0, 0, 1}},
	Pod:  netstate.End{Name: "v4if0", MAC: netstate.MAC{0x0a, 0, 0, 0, 0, 2}},
}

// library prints with the CNI library, as a plugin built on it would: it parses the result
// and, to add interfaces, converts it to the newest form.
func library(prevResult []byte, confVersion string) (off, on string, err error) {
	conf := types.PluginConf{CNIVersion: confVersion}
	if err := json.Unmarshal(prevResult, &conf.RawPrevResult); err != nil {
		return "", "", err
	}
	if err := version.ParsePrevResult(&conf); err != nil {
		return "", "", err
	}
	if off, err = printed(conf.PrevResult, confVersion); err != nil {
		return "", "", err
	}
	now, err := types100.NewResultFromResult(conf.PrevResult)
	if err != nil {
		return "", "", err
	}
	now.Interfaces = append(now.Interfaces,
		&types100.Interface{Name: "veth0a1b2c3d", Mac: "0a:00:00:00:00:01"}, &types100.Interface{Name: "v4if0", Mac: "0a:00:00:00:00:02", Sandbox: "/run/netns/a"})
	on, err = printed(now, confVersion)
	return off, on, err
}

func printed(r types.Result, version string) (string, error) {
	r, err := r.GetAsVersion(version)
	if err != nil {
		return "", err
	}
	b, err := json.MarshalIndent(r, "", "    ")
	return string(b), err
}

const full = `{"cniVersion":"VERSION","interfaces":[{"name":"eni1","mac":"","mtu":9001,"unknown":1},{"name":"eth0","mac":"254","sandbox":"/n","socketPath":"/s<>","pciID":"0000:00:05.0"}],` +
	`"ips":[{"version":"4","address":"10.0.0.5/32","interface":1,"gateway":"10.0.0.1"},{"version":"6","address":"2001:db8::5/128","interface":0},{"address":"::ffff:10.0.0.6/120"}],` +
	`"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1"},{"dst":"2001:db8::/32","mtu":1500,"advmss":1400,"priority":7,"table":0,"scope":253},{"dst":"10.1.2.3/8"}],` +
	`"dns":{"nameservers":["10.0.0.2"],"domain":"x","search":["a","b"],"options":["ndots:5"]},"other":{}}`

const oldFull = `{"cniVersion":"VERSION","ip4":{"ip":"10.0.0.5/32","gateway":"10.0.0.1","routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1","mtu":9}]},` +
	`"ip6":{"ip":"2001:db8::5/128","routes":[{"dst":"::/0"}]},"dns":{"nameservers":["10.0.0.2"]},"interfaces":[{"name":"x"}]}`

// TestResult compares with golden files and with the library, for each version.
func TestResult(t *testing.T) {
	t.Parallel()
	for _, v := range versions {
		given := full
		if v < "0.3.0" {
			given = oldFull
		}
		for name, in := range map[string]string{"full": given, "addresses": strings.Split(given, `,"routes"`)[0] + "}", "empty": `{"cniVersion":"VERSION"}`, "no version": strings.Replace(given, `"cniVersion":"VERSION",`, "", 1)} {
			if v < "0.3.0" && name == "addresses" {
				in = `{"cniVersion":"VERSION","ip4":{"ip":"10.0.0.5/32"}}`
			}
			in = strings.ReplaceAll(in, "VERSION", v)
			off, on, err := egress.Results([]byte(in), v, pair, "/run/netns/a")
			wantOff, wantOn, wantErr := library([]byte(in), v)
			if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
				t.Errorf("%s %s: %v, library %v", v, name, err, wantErr)
				continue
			}
			if wantErr != nil {
				continue
			}
			if diff := cmp.Diff(wantOff+"\n"+wantOn, string(off)+"\n"+string(on)); diff != "" {
				t.Errorf("%s %s (-library +ours):\n%s", v, name, diff)
			}
			if name == "full" {
				golden.Check(t, v+".json", append(on, 10))
			}
		}
	}
}

// FuzzPrevResult: whatever the CNI library passes through, we pass through byte for byte.
// Whatever it refuses, we may refuse too.
func FuzzPrevResult(f *testing.F) {
	for i, v := range versions {
		f.Add([]byte(strings.ReplaceAll(full, "VERSION", v)), i)
		f.Add([]byte(strings.ReplaceAll(oldFull, "VERSION", v)), i)
	}
	f.Add([]byte(`{"interfaces":[{"mtu":1e3,"name":"\ud83d\ude00"}],"ips":null,"dns":{"search":[null]}}`), 6)
	f.Add([]byte(`{"IPS":[{"Address":"::1/0","interface":-0}],"cniVersion":""}`), 4)
	f.Add([]byte(`{"routes":[{"dst":"1.2.3.4/08"}]}`), 5)
	f.Fuzz(func(t *testing.T, in []byte, index int) {
		v := versions[uint(index)%uint(len(versions))]
		wantOff, wantOn, wantErr := safely(in, v)
		off, on, err := egress.Results(in, v, pair, "/run/netns/a")
		if wantErr != nil || !json.Valid(in) || ambiguous(in) {
			return
		}
		if err != nil {
			if refusedOnPurpose(err.Error()) {
				return
			}
			t.Fatalf("%s: we say %v, the library %s", v, err, wantOn)
		}
		if string(off) != wantOff || string(on) != wantOn {
			t.Errorf("%s (-library +ours):\n%s", v, cmp.Diff(wantOff+"\n"+wantOn, string(off)+"\n"+string(on)))
		}
	})
}

// safely is library without its panics, which a null interface or address causes.
func safely(in []byte, v string) (off, on string, err error) {
	defer func() {
		if recover() != nil {
			err = os.ErrInvalid
		}
	}()
	return library(in, v)
}

// refusedOnPurpose reports errors about results that no plugin produces. The library accepts null
// elements, takes a missing address for an empty one, and allows leading zeros in a mask.
func refusedOnPurpose(text string) bool {
	for _, part := range []string{"has an element that is null", "without an address", "without dst", "has no ip", "invalid CIDR address: "} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// ambiguous reports repeated keys, or keys that differ only in case. The library sorts such keys
// before it reads them, and merges their contents.
func ambiguous(in []byte) bool {
	d := json.NewDecoder(strings.NewReader(string(in)))
	type level struct {
		keys   map[string]bool
		object bool
		isKey  bool
	}
	var stack []level
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		var top *level
		if len(stack) > 0 {
			top = &stack[len(stack)-1]
		}
		if delim, ok := token.(json.Delim); ok && (delim == ']' || delim == '}') {
			stack = stack[:len(stack)-1]
			if len(stack) > 0 {
				stack[len(stack)-1].isKey = true
			}
			continue
		}
		if top != nil && top.object && top.isKey {
			key := strings.ToLower(strings.ToUpper(token.(string)))
			if top.keys[key] || key != strings.ToLower(token.(string)) {
				return true
			}
			top.keys[key], top.isKey = true, false
			continue
		}
		if delim, ok := token.(json.Delim); ok {
			stack = append(stack, level{map[string]bool{}, delim == '{', true})
		} else if top != nil {
			top.isKey = true
		}
	}
}
