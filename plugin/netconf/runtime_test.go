package netconf

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cnictl/daemon/api/checkpoint"
)

func TestValidAttachments(t *testing.T) {
	t.Parallel()
	const a, b = `{"containerID":"a","ifname":"eth0"}`, `{"ifname":"net1","containerID":"b","more":[{}]}`
	one := []Attachment{{"a", "eth0"}}
	both := []Attachment{{"a", "eth0"}, {"b", "net1"}}
	for _, row := range []struct {
		name, stdin string
		want        []Attachment
		given       bool
		err         string // without its prefix
	}{
		{"none", `{"name":"n"}`, nil, false, ""},
		{"null", `{"cni.dev/valid-attachments":null}`, nil, false, ""},
		{"empty", `{"cni.dev/valid-attachments":[]}`, nil, true, ""},
		{"two", `{"cni.dev/valid-attachments":[` + a + `,` + b + `]}`, both, true, ""},
		{"the older name", `{"cni.dev/attachments":[` + a + `]}`, one, true, ""},
		{"both names", `{"cni.dev/attachments":[` + b + `],"cni.dev/valid-attachments":[` + a + `]}`, one, true, ""},
		{"both names, other order", `{"cni.dev/valid-attachments":[` + a + `],"cni.dev/attachments":[` + b + `]}`, one, true, ""},
		{"the older name has a list", `{"cni.dev/valid-attachments":null,"cni.dev/attachments":[` + a + `]}`, one, true, ""},
		{"twice", `{"cni.dev/valid-attachments":[` + b + `],"cni.dev/valid-attachments":[` + a + `]}`, one, true, ""},
		{"escaped", `{"cni.dev/valid-attachments":[{"containerID":"\u0061","ifname":"eth0"}]}`, one, true, ""},
		{"no list", `{"cni.dev/valid-attachments":{}}`, nil, false, "cni.dev/valid-attachments is object, not array, at offset 29"},
		{"no object", `{"cni.dev/valid-attachments":["a"]}`, nil, false, "attachment is string, not object, at offset 30"},
		{"a null", `{"cni.dev/valid-attachments":[null]}`, nil, false, "attachment without containerID or ifname"},
		{"no interface", `{"cni.dev/valid-attachments":[` + a + `,{"containerID":"b"}]}`, nil, false, "attachment without containerID or ifname"},
		{"a number", `{"cni.dev/valid-attachments":[{"containerID":1,"ifname":"eth0"}]}`, nil, false, "containerID is number, not string, at offset 45"},
		{"no configuration", `[]`, nil, false, "network configuration is array, not object, at offset 0"},
	} {
		got, given, err := ValidAttachments([]byte(row.stdin))
		said := ""
		if err != nil {
			said = strings.TrimPrefix(err.Error(), "decoding valid attachments from network config: ")
		}
		if diff := cmp.Diff(row.want, got); diff != "" || given != row.given || said != row.err {
			t.Errorf("%s: given %t, error %q (-want +got):\n%s", row.name, given, said, diff)
		}
	}
	if _, _, err := ValidAttachments([]byte(`{`)); err == nil {
		t.Error("broken JSON: no error")
	}
}

// asCheckpoint converts an entry of the codec to this package's type.
func asCheckpoint(e *checkpoint.Entry) Allocation {
	a := Allocation{
		NetworkName: e.NetworkName, Attachment: Attachment{e.ContainerID, e.IfName}, Address: e.IPv4,
		PodNamespace: e.PodNamespace, PodName: e.PodName,
	}
	if !e.IPv4.IsValid() {
		a.Address = e.IPv6
	}
	if !e.AllocatedAt.IsZero() {
		a.AllocatedAt = e.AllocatedAt.UnixNano()
	}
	return a
}

func sameAsCodec(t *testing.T, file []byte) {
	t.Helper()
	got, err := Allocations(file)
	entries, codecErr := checkpoint.Decode(file)
	if codecErr != nil {
		return // the codec is stricter
	}
	if err != nil {
		t.Fatalf("%v, and the codec reads %s", err, file)
	}
	var want []Allocation
	for i := range entries {
		want = append(want, asCheckpoint(&entries[i]))
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("%s (-codec +ours):\n%s", file, diff)
	}
}

// TestAllocations_Recorded: recorded checkpoints of upstream read the same as with the codec.
func TestAllocations_Recorded(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../daemon/api/checkpoint/testdata/recorded/*.json")
	if err != nil || len(names) < 9 {
		t.Fatalf("recorded files: %v, %v", names, err)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sameAsCodec(t, file)
	}
}

func TestAllocations(t *testing.T) {
	t.Parallel()
	list := func(entries string) string { return `{"version":"vpc-cni-ipam/1","allocations":[` + entries + `]}` }
	for _, file := range []string{
		list(`{"networkName":"aws-cni","containerID":"c1","ifName":"eth0","ipv4":"10.0.3.41"}`),
		list(`{"networkName":"_migrated-from-cri","containerID":"c1","ifName":"unknown","ipv4":"10.0.3.41"}`),
		list(`{"ipv6":"2001:db8::1","allocationTimestamp":1787000000123456789,"metadata":{"k8sPodNamespace":"shop","k8sPodName":"cart","interfacesCount":1}}`),
		list(`{"ipv4":"::ffff:10.0.3.41","metadata":null,"new":{"a":[1]}}`),
		list(``), `{"version":"vpc-cni-ipam/1","allocations":null}`, `{"x":1,"version":"vpc-cni-ipam/1"}` + "\n",
	} {
		if _, err := checkpoint.Decode([]byte(file)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sameAsCodec(t, []byte(file))
	}
	for file, says := range map[string]string{
		``:                                       "unexpected end",
		`{"version":"vpc-cni-ipam/1","allo`:      "unexpected end",
		`[]`:                                     "checkpoint is array, not object",
		`{"allocations":[]}`:                     `version is "", accepted is "vpc-cni-ipam/1"`,
		`{"version":"vpc-cni-ipam/2"}`:           `version is "vpc-cni-ipam/2"`,
		list(`{"containerID":"c"}`):              `the unusable address ""`,
		list(`{"ipv4":"10.0.0.256"}`):            `the unusable address "10.0.0.256"`,
		list(`null`):                             "allocation is null",
		list(`7`):                                "allocation is number, not object",
		list(`{"ipv4":"10.0.0.1","ifName":[]}`):  "ifName is array, not string",
		list(`{"ipv4":"10.0.0.1","metadata":1}`): "metadata is number, not object",
		list(`{"ipv4":"10.0.0.1","allocationTimestamp":1e3}`): "allocationTimestamp is not an integer",
		`{"version":"vpc-cni-ipam/1","allocations":{}}`:       "allocations is object, not array",
	} {
		got, err := Allocations([]byte(file))
		if err == nil || got != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, %v; want an error with %q", file, got, err, says)
		}
	}
}

// FuzzRuntimeDocuments: neither reader crashes on any input, and a document that cannot be
// parsed completely yields nothing.
func FuzzRuntimeDocuments(f *testing.F) {
	names, err := filepath.Glob("../../daemon/api/checkpoint/testdata/recorded/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		file, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Add([]byte(`{"cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}],"cni.dev/attachments":null}`))
	f.Add([]byte(`{"version":"vpc-cni-ipam/1","allocations":[{"ipv6":"2001:db8::1","metadata":{"k8sPodName":"\ud83d\ude00"}},null]}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		valid, given, err := ValidAttachments(document)
		if err != nil && (valid != nil || given) {
			t.Errorf("attachments %v with error %v", valid, err)
		}
		for _, a := range valid {
			if a.ContainerID == "" || a.IfName == "" {
				t.Errorf("attachment %+v", a)
			}
		}
		list, err := Allocations(document)
		if err != nil && list != nil {
			t.Errorf("allocations %v with error %v", list, err)
		}
		for _, a := range list {
			if !a.Address.IsValid() || a.Address.Is4In6() {
				t.Errorf("allocation %+v", a)
			}
		}
	})
}
