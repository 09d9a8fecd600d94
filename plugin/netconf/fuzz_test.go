package netconf

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/containernetworking/cni/libcni"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
)

// cniVersions are the versions in which a runtime may pass a previous result.
var cniVersions = []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}

// inVersion converts a recorded result to another version with the CNI library.
func inVersion(f *testing.F, recorded []byte, version string) []byte {
	f.Helper()
	r, err := create.CreateFromBytes(recorded)
	if err != nil {
		f.Fatal(err)
	}
	if r, err = r.GetAsVersion(version); err != nil {
		f.Fatal(err)
	}
	b, err := json.Marshal(r)
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// FuzzPrevResultVersions: we read a result of any version exactly as the CNI library does.
// Versions before 0.3.0 name no interfaces, so ours are empty there.
func FuzzPrevResultVersions(f *testing.F) {
	for _, v := range cniVersions {
		f.Add(inVersion(f, read(f, "result-0.4.0.json"), v))
	}
	f.Add([]byte(`{"cniVersion":"1.0.0","interfaces":[{"name":"eni0","mtu":9001},{"name":"eth0","mac":"2","sandbox":"/n"}],"ips":[{"address":"2001:db8::1/128","interface":1,"gateway":"fe80::1"}]}`))
	f.Add([]byte(`{"cniVersion":"0.3.1","interfaces":[null],"ips":[{"version":"4","address":"10.0.0.1/32"}]}`))
	f.Add([]byte(`{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/32"}}`))
	f.Add([]byte(`{"ip4":{"ip":"10.0.0.1/32"},"ips":[]}`))
	f.Add([]byte(`{"cniVersion":"0.3.1","ips":[{"version":"4"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		conf := NetConf{RawPrevResult: in}
		got, err := conf.PrevResult()
		lib, version := libraryResult(in)
		if lib == nil || version == "0.1.0" || version == "0.2.0" || repeatsKeys(in) {
			return // before 0.3.0, interfaces and ips are unknown members and may have any form
		}
		for _, ip := range lib.IPs {
			if ip.Address.IP == nil {
				return // the library takes a missing address for an empty one; we refuse it
			}
		}
		if err != nil && leadingZeros(err.Error()) {
			return // net.ParseCIDR accepts leading zeros in a mask, netip.ParsePrefix does not
		}
		if err != nil {
			t.Fatalf("the library reads it, we say %v", err)
		}
		if got == nil {
			got = &PrevResult{} // "null"
		}
		if len(got.Interfaces) != len(lib.Interfaces) || len(got.IPs) != len(lib.IPs) {
			t.Fatalf("%+v\nlibrary %v", got, lib)
		}
		for i, want := range lib.Interfaces {
			if want == nil {
				want = &types100.Interface{}
			}
			if have := got.Interfaces[i]; have != (Interface{want.Name, want.Mac, want.Sandbox}) {
				t.Errorf("interface %d: %+v, library %+v", i, have, want)
			}
		}
		for i, want := range lib.IPs {
			have, err := netip.ParsePrefix(got.IPs[i].Address)
			bits, _ := want.Address.Mask.Size()
			ip, _ := netip.AddrFromSlice(want.Address.IP)
			if err != nil || have.Addr().Unmap() != ip.Unmap() || have.Bits() != bits || !reflect.DeepEqual(got.IPs[i].Interface, want.Interface) {
				t.Errorf("ip %d: %+v, library %+v", i, got.IPs[i], want)
			}
		}
	})
}

// libraryResult reads a result with the CNI library. It returns nil if that fails.
func libraryResult(in []byte) (r *types100.Result, version string) {
	defer func() {
		if recover() != nil {
			r = nil // it panics at a null interface or address
		}
	}()
	created, err := create.CreateFromBytes(in)
	if err != nil {
		return nil, ""
	}
	if r, err = types100.NewResultFromResult(created); err != nil {
		return nil, ""
	}
	return r, created.Version()
}

// leadingZeros reports whether an error is only about leading zeros in the mask of a CIDR.
func leadingZeros(text string) bool {
	_, cidr, _ := strings.Cut(text, "invalid CIDR address: ")
	ip, mask, _ := strings.Cut(cidr, "/")
	short := strings.TrimLeft(mask, "0")
	if short == "" {
		short = "0"
	}
	_, err := netip.ParsePrefix(ip + "/" + short)
	return err == nil && short != mask
}

// sameJSON reports whether two texts are the same JSON value.
func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return reflect.DeepEqual(x, y)
}

// exactKeys reports whether no key differs from a known one only in case. The library treats
// such keys as different, encoding/json as the same.
func exactKeys(t *testing.T, in []byte) bool {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(in, &all); err != nil {
		t.Fatal(err)
	}
	for k := range all {
		for _, known := range []string{"cniVersion", "cniVersions", "name", "disableCheck", "plugins"} {
			if k != known && strings.EqualFold(k, known) {
				return false
			}
		}
	}
	return true
}

// FuzzConflist: a list that both the CNI library and we can read passes through our types
// unchanged, and Parse reads what a runtime makes of its entries.
func FuzzConflist(f *testing.F) {
	stdin := string(read(f, "stdin.json"))
	f.Add([]byte(`{"cniVersion":"0.4.0","name":"aws-cni","disableCheck":true,"plugins":[` + stdin + `,{"type":"portmap","capabilities":{"portMappings":true},"snat":true}]}`))
	f.Add([]byte(`{"cniVersions":["0.3.1","1.1.0"],"name":"aws-cni","plugins":[` + stdin + `]}`))
	f.Add([]byte(`{"cniVersion":"1.0.0","name":"a","plugins":[{"type":"aws-cni","x":[1, 2,"<&>\u2028"]},{"type":"egress-cni","nodeIP":"10.0.0.1"}]}`))
	f.Add([]byte(`{"name":"a","plugins":[]}`))
	f.Add([]byte(`{"name":"a"}`))
	f.Add([]byte(`{"name":"a","plugins":[null,{}]}`))
	f.Add([]byte(`{"cniVersion":"0.4.0","name":"a","plugins":[{"type":"aws-cni","vethPrefix":"","mtu":"x","podSGEnforcingMode":"standard"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var ours Conflist
		oursErr := json.Unmarshal(in, &ours)
		lib, err := libcni.NetworkConfFromBytes(in)
		if err != nil || oursErr != nil || lib.LoadOnlyInlinedPlugins || len(ours.Plugins) == 0 || !exactKeys(t, in) {
			return // we never print a list without plugins
		}
		if ours.Name != lib.Name || len(ours.Plugins) != len(lib.Plugins) {
			t.Fatalf("name %q and %d plugins, library %q and %d", ours.Name, len(ours.Plugins), lib.Name, len(lib.Plugins))
		}
		out, err := json.Marshal(ours)
		if err != nil {
			t.Fatal(err)
		}
		again, err := libcni.NetworkConfFromBytes(out)
		if err != nil || again.Name != lib.Name || again.CNIVersion != lib.CNIVersion || len(again.Plugins) != len(lib.Plugins) {
			t.Fatalf("the library reads our print as %+v, %v, upstream as %+v\n%s", again, err, lib, out)
		}
		for i, p := range lib.Plugins {
			if !sameJSON(t, p.Bytes, again.Plugins[i].Bytes) {
				t.Errorf("entry %d: %s, printed %s", i, p.Bytes, again.Plugins[i].Bytes)
			}
			given, err := libcni.InjectConf(p, map[string]any{"name": lib.Name, "cniVersion": lib.CNIVersion})
			if err != nil {
				continue
			}
			got, err := Parse(given.Bytes)
			want, wantErr := parseByLibrary(given.Bytes)
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("entry %d: %v, encoding/json %v\n%s", i, err, wantErr, given.Bytes)
			}
			if err == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("entry %d read as %+v, want %+v", i, got, want)
			}
		}
	})
}
