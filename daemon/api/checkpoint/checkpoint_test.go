package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/netnames"
)

// recorded returns the recorded files that upstream wrote.
func recorded(tb testing.TB) map[string][]byte {
	tb.Helper()
	names, err := filepath.Glob("testdata/recorded/*.json")
	if err != nil || len(names) < 9 {
		tb.Fatalf("recorded files: %v, %v", names, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = os.ReadFile(name); err != nil {
			tb.Fatal(err)
		}
	}
	return files
}

func encodeAll(entries []Entry) []byte {
	var encoded [][]byte
	for _, e := range entries {
		encoded = append(encoded, EncodeEntry(e))
	}
	return Encode(slices.Values(encoded))
}

func TestRecorded_SameBytes(t *testing.T) {
	t.Parallel()
	for name, data := range recorded(t) {
		entries, err := Decode(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(entries) == 0 {
			t.Errorf("%s: no entries", name)
		}
		if again := encodeAll(entries); !bytes.Equal(again, data) {
			t.Errorf("%s: encoded again\n%s\nwant\n%s", name, again, data)
		}
	}
}

func TestDecode_Recorded(t *testing.T) {
	t.Parallel()
	entries, err := Decode(recorded(t)["testdata/recorded/secondary.ipam.one-deleted.json"])
	if err != nil {
		t.Fatal(err)
	}
	want := Entry{
		NetworkName: "aws-cni", ContainerID: "0000000000000000000000000000000000000000000000000000000000abc002", IfName: "eth0",
		IPv4: netip.MustParseAddr("10.0.0.13"), AllocatedAt: time.Unix(0, 1795229988482278218).UTC(),
		PodNamespace: "default", PodName: "web-1", Interfaces: 1,
	}
	if len(entries) != 2 || entries[1] != want {
		t.Errorf("entries %+v, want the second to be %+v", entries, want)
	}
}

// One form per release of upstream that changed the file.
func TestDecode_HistoricForms(t *testing.T) {
	t.Parallel()
	const base = `"networkName":"aws-cni","containerID":"c1","ifName":"eth0"`
	plain := Entry{NetworkName: "aws-cni", ContainerID: "c1", IfName: "eth0", IPv4: netip.MustParseAddr("10.0.3.41")}
	with := func(change func(*Entry)) Entry {
		e := plain
		change(&e)
		return e
	}
	rows := []struct {
		name, json string
		want       []Entry
	}{
		{"v1.7", `{"version":"vpc-cni-ipam/1","allocations":[{` + base + `,"ipv4":"10.0.3.41"}]}`, []Entry{plain}},
		{"v1.7 migrated", `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"_migrated-from-cri","containerID":"c1","ifName":"unknown","ipv4":"10.0.3.41"}]}`,
			[]Entry{with(func(e *Entry) { e.NetworkName, e.IfName = netnames.MigratedNetwork, netnames.MigratedIfName })}},
		{"v1.10 IPv6", `{"version":"vpc-cni-ipam/1","allocations":[{` + base + `,"ipv6":"2001:db8::1"}]}`,
			[]Entry{with(func(e *Entry) { e.IPv4, e.IPv6 = netip.Addr{}, netip.MustParseAddr("2001:db8::1") })}},
		{"v1.11", `{"version":"vpc-cni-ipam/1","allocations":[{` + base + `,"ipv4":"10.0.3.41","allocationTimestamp":1787000000123456789,"metadata":{"k8sPodNamespace":"shop","k8sPodName":"cart"}}]}`,
			[]Entry{with(func(e *Entry) {
				e.AllocatedAt, e.PodNamespace, e.PodName = time.Unix(0, 1787000000123456789).UTC(), "shop", "cart"
			})}},
		{"v1.11 without pod", `{"version":"vpc-cni-ipam/1","allocations":[{` + base + `,"ipv4":"10.0.3.41","allocationTimestamp":0,"metadata":{}}]}`, []Entry{plain}},
		{"v1.20", `{"version":"vpc-cni-ipam/1","allocations":[{` + base + `,"ipv4":"10.0.3.41","allocationTimestamp":0,"metadata":{"interfacesCount":2}}]}`,
			[]Entry{with(func(e *Entry) { e.Interfaces = 2 })}},
		{"empty", `{"version":"vpc-cni-ipam/1","allocations":[]}` + "\n", []Entry{}},
		{"null list", `{"version":"vpc-cni-ipam/1","allocations":null}`, []Entry{}},
		{"no list", `{"version":"vpc-cni-ipam/1"}`, []Entry{}},
		{"unknown members", `{"checksum":"x","version":"vpc-cni-ipam/1","allocations":[{"new":{"a":[1]},` + base + `,"ipv4":"10.0.3.41"}],"later":1}`, []Entry{plain}},
		{"indented, list first", "{\n \"allocations\" : [ {" + base + ", \"ipv4\" : \"10.0.3.41\"} ],\n \"version\": \"vpc-cni-ipam/1\"}", []Entry{plain}},
		{"more after the document", `{"version":"vpc-cni-ipam/1","allocations":[]} trailing`, []Entry{}},
		{"mapped address", `{"version":"vpc-cni-ipam/1","allocations":[{` + base + `,"ipv4":"::ffff:10.0.3.41"}]}`, []Entry{plain}},
	}
	for _, row := range rows {
		got, err := Decode([]byte(row.json))
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s: %+v, %v; want %+v", row.name, got, err, row.want)
		}
	}
}

func TestDecode_Errors(t *testing.T) {
	t.Parallel()
	list := func(entries string) string { return `{"version":"vpc-cni-ipam/1","allocations":[` + entries + `]}` }
	rows := []struct {
		name, json string
		problem    Problem
		entry      int
		field      string
		salvaged   int
		says       string
	}{
		{"empty", "", Empty, -1, "", 0, "empty"},
		{"white space", " \n", Empty, -1, "", 0, "empty"},
		{"truncated", strings.TrimSuffix(list(`{"containerID":"a","ipv4":"10.0.0.1"},{"containerID":"b","ipv4":"10.0.0.2"}`), `"10.0.0.2"}]}`), Truncated, -1, "", 1, "truncated"},
		{"truncated in the version", `{"version":"vpc-cni`, Truncated, -1, "", 0, "truncated"},
		{"overwritten", `{"version":"vpc-cni-ipam/1","allocations":[{"ipv4":"10.0.0.1"},` + "\x00\x00\x00", NotJSON, -1, "", 1, "byte 64"},
		{"zeros", "\x00\x00\x00\x00", NotJSON, -1, "", 0, "not JSON at byte 1"},
		{"text", "hello", NotJSON, -1, "", 0, "not JSON"},
		{"a list", "[]", Foreign, -1, "", 0, "not a checkpoint"},
		{"a number", "7", Foreign, -1, "", 0, "not a checkpoint"},
		{"another document", `{"cniVersion":"1.0.0","ips":[]}`, Foreign, -1, "", 0, "not a checkpoint"},
		{"null version", `{"version":null,"allocations":[]}`, Foreign, -1, "", 0, "not a checkpoint"},
		{"version of a number", `{"version":1,"allocations":[]}`, Foreign, -1, "", 0, "not a checkpoint"},
		{"object for a list", `{"version":"vpc-cni-ipam/1","allocations":{}}`, Foreign, -1, "", 0, "not a checkpoint"},
		{"later version", `{"version":"vpc-cni-ipam/2","allocations":[]}`, WrongVersion, -1, "", 0, `version "vpc-cni-ipam/2", accepted is "vpc-cni-ipam/1"`},
		{"bad address", list(`{"ipv4":"10.0.0.1"},{"ipv4":"10.0.0.256"}`), BadEntry, 1, "ipv4", 1, "entry 1, field ipv4"},
		{"address with mask", list(`{"ipv4":"10.0.0.1/32"}`), BadEntry, 0, "ipv4", 0, "entry 0, field ipv4"},
		{"IPv6 as IPv4", list(`{"ipv4":"2001:db8::1"}`), BadEntry, 0, "ipv4", 0, "other family"},
		{"IPv4 as IPv6", list(`{"ipv6":"10.0.0.1"}`), BadEntry, 0, "ipv6", 0, "other family"},
		{"zone", list(`{"ipv6":"fe80::1%eth0"}`), BadEntry, 0, "ipv6", 0, "zone"},
		{"no address", list(`{"containerID":"a"}`), BadEntry, 0, "ipv4", 0, "neither"},
		{"null entry", list(`null`), BadEntry, 0, "ipv4", 0, "neither"},
		{"text for an entry", list(`{"ipv4":"10.0.0.1"},"x",{"ipv4":"10.0.0.3"}`), BadEntry, 1, "entry", 2, "entry 1"},
		{"number for a name", list(`{"ipv4":"10.0.0.1","containerID":7}`), BadEntry, 0, "containerID", 0, "field containerID"},
		{"text for a time", list(`{"ipv4":"10.0.0.1","allocationTimestamp":"now"}`), BadEntry, 0, "allocationTimestamp", 0, "field allocationTimestamp"},
		{"fraction for a time", list(`{"ipv4":"10.0.0.1","allocationTimestamp":1.5}`), BadEntry, 0, "allocationTimestamp", 0, "field allocationTimestamp"},
		{"text for a count", list(`{"ipv4":"10.0.0.1","metadata":{"interfacesCount":"1"}}`), BadEntry, 0, "metadata.interfacesCount", 0, "field metadata.interfacesCount"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			entries, err := Decode([]byte(row.json))
			var f *FormatError
			if !errors.As(err, &f) || entries != nil {
				t.Fatalf("got %v, %v; want a FormatError alone", entries, err)
			}
			if f.Problem != row.problem || f.Entry != row.entry || f.Field != row.field || !strings.Contains(err.Error(), row.says) {
				t.Errorf("%s (problem %s, entry %d, field %q), want %+v", err, f.Problem, f.Entry, f.Field, row)
			}
			if got := Salvage([]byte(row.json)); len(got) != row.salvaged {
				t.Errorf("salvaged %+v, want %d", got, row.salvaged)
			}
		})
	}
}

// A file cut at any byte is refused, unless only the final newline is missing. Salvage
// returns its first entries.
func TestSalvage_EveryCut(t *testing.T) {
	t.Parallel()
	for name, data := range recorded(t) {
		if len(data) > 1000 { // two and three entries show as much as twenty
			continue
		}
		all, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		for n := range data {
			entries, err := Decode(data[:n])
			if whole := n == len(data)-1; whole != (err == nil) {
				t.Fatalf("%s cut to %d bytes: %d entries, %v", name, n, len(entries), err)
			}
			got := Salvage(data[:n])
			if len(got) < last || !slices.Equal(got, all[:len(got)]) {
				t.Fatalf("%s cut to %d bytes: salvaged %+v", name, n, got)
			}
			last = len(got)
		}
		if last != len(all) {
			t.Errorf("%s: salvaged %d of %d entries", name, last, len(all))
		}
	}
}

// original is upstream's document: encoding/json writes these members in this order.
type original struct {
	Version     string          `json:"version"`
	Allocations []originalEntry `json:"allocations"`
}

type originalEntry struct {
	NetworkName string `json:"networkName"`
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
	IPv4        string `json:"ipv4,omitempty"`
	IPv6        string `json:"ipv6,omitempty"`
	Timestamp   int64  `json:"allocationTimestamp"`
	Metadata    struct {
		Namespace  string `json:"k8sPodNamespace,omitempty"`
		Name       string `json:"k8sPodName,omitempty"`
		Interfaces int    `json:"interfacesCount,omitempty"`
	} `json:"metadata"`
}

func originalBytes(t *testing.T, entries []Entry) []byte {
	t.Helper()
	doc := original{Version: netnames.CheckpointVersion, Allocations: []originalEntry{}}
	for _, e := range entries {
		o := originalEntry{NetworkName: e.NetworkName, ContainerID: e.ContainerID, IfName: e.IfName}
		if e.IPv4.IsValid() {
			o.IPv4 = e.IPv4.String()
		}
		if e.IPv6.IsValid() {
			o.IPv6 = e.IPv6.String()
		}
		if !e.AllocatedAt.IsZero() {
			o.Timestamp = e.AllocatedAt.UnixNano()
		}
		o.Metadata.Namespace, o.Metadata.Name, o.Metadata.Interfaces = e.PodNamespace, e.PodName, e.Interfaces
		doc.Allocations = append(doc.Allocations, o)
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(doc); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestEncode_AsEncodingJSON(t *testing.T) {
	t.Parallel()
	v4 := netip.MustParseAddr("10.0.0.1")
	for _, entries := range [][]Entry{
		nil,
		{{IPv4: v4}},
		{{NetworkName: "a\"b\\c", ContainerID: "<&>\u2028\u2029\x00\x1f\b\f\n\r\t\x7f", IfName: "\xff\xc3(é世", IPv4: v4}},
		{{IPv6: netip.MustParseAddr("2001:db8::1"), Interfaces: -3}, {IPv4: v4, PodName: "p", AllocatedAt: time.Unix(0, -5)}},
	} {
		if got, want := encodeAll(entries), originalBytes(t, entries); !bytes.Equal(got, want) {
			t.Errorf("encoded\n%s\nwant\n%s", got, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, data := range recorded(f) {
		f.Add(data)
	}
	f.Add([]byte(`{"version":"vpc-cni-ipam/1","allocations":[{"ipv6":"2001:db8::1","metadata":null}]}`))
	f.Add([]byte(`{"version":"vpc-cni-ipam/1","allocations":[{"ipv4":"10.0.0.1","networkName":"\u003c\ud800"}],"x":[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := Decode(data)
		if (err == nil) != (entries != nil) {
			t.Fatalf("%d entries with error %v", len(entries), err)
		}
		Salvage(data)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("error without text")
			}
			return
		}
		encoded := encodeAll(entries)
		if want := originalBytes(t, entries); !bytes.Equal(encoded, want) {
			t.Fatalf("encoded\n%s\nwant\n%s", encoded, want)
		}
		again, err := Decode(encoded)
		if err != nil || !slices.Equal(again, entries) {
			t.Fatalf("decoded again %+v, %v; want %+v", again, err, entries)
		}
		if salvaged := Salvage(encoded); len(salvaged) != len(entries) {
			t.Fatalf("salvaged %d of %d entries", len(salvaged), len(entries))
		}
	})
}

func benchEntry(i int) Entry {
	return Entry{
		NetworkName: "aws-cni", ContainerID: fmt.Sprintf("%064x", i), IfName: "eth0",
		IPv4: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), AllocatedAt: time.Unix(1787000000, 123456789),
		PodNamespace: "default", PodName: fmt.Sprintf("web-%d-7d9f8b6c5-abcde", i), Interfaces: 1,
	}
}

func BenchmarkEncodeEntry(b *testing.B) {
	b.ReportAllocs()
	e := benchEntry(1)
	for b.Loop() {
		EncodeEntry(e)
	}
}

func BenchmarkAppend700(b *testing.B) {
	var encoded [][]byte
	for i := range 700 {
		encoded = append(encoded, EncodeEntry(benchEntry(i)))
	}
	buf := Encode(slices.Values(encoded))
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = Append(buf[:0], slices.Values(encoded))
	}
}

func BenchmarkDecode700(b *testing.B) {
	var encoded [][]byte
	for i := range 700 {
		encoded = append(encoded, EncodeEntry(benchEntry(i)))
	}
	data := Encode(slices.Values(encoded))
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
