package vpc_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"

	"cnictl/plugin/vpc"
)

func recorded(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/recorded/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// libraryResult prints the same pod with the CNI library.
func libraryResult(t testing.TB, version, hostLink, podLink, hash, netns, address string, table, device int) string {
	t.Helper()
	ip := net.ParseIP(address)
	bits := 128
	if ip.To4() != nil {
		ip, bits = ip.To4(), 32
	}
	one := 1
	r := &types100.Result{
		CNIVersion: "1.1.0",
		Interfaces: []*types100.Interface{
			{Name: hostLink},
			{Name: podLink, Mac: fmt.Sprint(table), Sandbox: netns},
			{Name: "dummy" + hash, Mac: "0", Sandbox: fmt.Sprint(device)},
		},
		IPs: []*types100.IPConfig{{Interface: &one, Address: net.IPNet{IP: ip, Mask: net.CIDRMask(bits, bits)}}},
	}
	converted, err := r.GetAsVersion(version)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.MarshalIndent(converted, "", "    ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestResult_Recorded(t *testing.T) {
	t.Parallel()
	for file, got := range map[string][]byte{
		"add-web-0.json": vpc.ResultJSON("0.4.0", "eni0d7763386da", "eth0", "0d7763386da", "/run/netns/rec1", "10.0.0.12", 254, 0),
		"add-web-1.json": vpc.ResultJSON("0.4.0", "eni0761ccbeace", "eth0", "0761ccbeace", "/run/netns/rec2", "10.0.0.21", 2, 1),
	} {
		if diff := cmp.Diff(recorded(t, file), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func TestResult_EveryVersion(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		for _, address := range []string{"10.0.0.21", "2001:db8::7"} {
			for _, netns := range []string{"/run/netns/a", `/run/"<&>` + "\u2028\x01"} {
				got := string(vpc.ResultJSON(version, "eni1", "eth0", "1", netns, address, 10102, 2))
				if diff := cmp.Diff(libraryResult(t, version, "eni1", "eth0", "1", netns, address, 10102, 2), got); diff != "" {
					t.Errorf("%s %s (-library +ours):\n%s", version, address, diff)
				}
			}
		}
	}
}

func TestError_AsTheLibraryPrints(t *testing.T) {
	t.Parallel()
	for _, details := range []string{"", `pool-dry: no "free" address <here>` + "\n"} {
		want, err := json.MarshalIndent(types.NewError(11, "add cmd: x", details), "", "    ")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(vpc.ErrorJSON(11, "add cmd: x", "", details))); diff != "" {
			t.Errorf("(-library +ours):\n%s", diff)
		}
	}
}
