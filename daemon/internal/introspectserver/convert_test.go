package introspectserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cnictl/daemon/api/introspect"
	"cnictl/daemon/ipam"
)

const recordedDir = "../../api/introspect/testdata/recorded"

func readRecorded(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(recordedDir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestENIs_PrefixOneDeleted spells out one recorded state.
func TestENIs_PrefixOneDeleted(t *testing.T) {
	t.Parallel()
	pod := func(addr, name, since string) ipam.AddressState {
		return ipam.AddressState{
			Address: netip.MustParseAddr(addr),
			Sandbox: ipam.Sandbox{Network: "aws-cni", ContainerID: "a-secret-sandbox", IfName: "eth0"},
			Pod:     ipam.Pod{Namespace: "default", Name: name, Interfaces: 1}, AssignedAt: at(t, since),
		}
	}
	s := ipam.Snapshot{ENIs: []ipam.ENIState{{
		ENI: ipam.ENI{ID: "eni-0fa4e000000000001", Primary: true, RouteTable: 254, SubnetID: "subnet-0fa4e000000000001"},
		CIDRs: []ipam.CIDRState{{
			Prefix: netip.MustParsePrefix("10.0.0.16/28"), Assigned: 2,
			Records: []ipam.AddressState{
				pod("10.0.0.16", "web-0", "2026-11-21T03:00:11.051920878Z"),
				pod("10.0.0.17", "web-1", "2026-11-21T03:00:11.085439936Z"),
				{Address: netip.MustParseAddr("10.0.0.18"), AssignedAt: at(t, "2026-11-21T03:00:11.110952225Z"), UnassignedAt: at(t, "2026-11-21T03:00:11.351072087Z")},
			},
		}},
	}}}
	checkENIs(t, s, readRecorded(t, "prefix/v1-enis.one-deleted.json"))
}

func checkENIs(t *testing.T, s ipam.Snapshot, want []byte) {
	t.Helper()
	got, err := json.Marshal(ENIs(s))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestENIs_EveryRecordedState builds a book from each recorded answer and expects the same
// answer from it.
func TestENIs_EveryRecordedState(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(recordedDir + "/*/v1-enis.*.json")
	if err != nil || len(files) != 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			pool, err := introspect.Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			checkENIs(t, bookOf(pool), want)
		})
	}
}

func bookOf(p *introspect.Pool) ipam.Snapshot {
	var s ipam.Snapshot
	for _, e := range p.ENIs {
		state := ipam.ENIState{ENI: ipam.ENI{
			ID: ipam.ENIID(e.ID), Card: e.Card, Device: e.Device, Primary: e.Primary, Trunk: e.Trunk, EFA: e.EFA,
			Excluded: e.Excluded, SubnetID: e.SubnetID, RouteTable: *e.RouteTable,
		}}
		for _, c := range e.CIDRs {
			cidr := ipam.CIDRState{Prefix: c.CIDR, Assigned: c.Assigned}
			for _, a := range c.Addresses {
				rec := ipam.AddressState{Address: a.Address, AssignedAt: *a.AssignedAt}
				if a.State == introspect.AddressAssigned {
					rec.Sandbox = ipam.Sandbox{Network: "aws-cni", ContainerID: "c-" + a.PodName, IfName: "eth0"}
					rec.Pod = ipam.Pod{Namespace: a.PodNamespace, Name: a.PodName, Interfaces: 1}
				} else {
					rec.UnassignedAt = *a.UnassignedAt
				}
				cidr.Records = append(cidr.Records, rec)
			}
			state.CIDRs = append(state.CIDRs, cidr)
		}
		s.ENIs = append(s.ENIs, state)
	}
	return s
}

func TestENIs_Shapes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		enis []ipam.ENIState
		want string
	}{
		"no ENI yet": {nil, `{"0":{"TotalIPs":0,"AssignedIPs":0,"ENIs":{}}}`},
		"second card, IPv6 prefix, excluded": {
			[]ipam.ENIState{{
				ENI:   ipam.ENI{ID: "eni-2", Card: 1, Device: 1, EFA: true, Excluded: true, RouteTable: 12, SubnetID: "subnet-2"},
				CIDRs: []ipam.CIDRState{{Prefix: netip.MustParsePrefix("2001:db8:1::/80")}},
			}},
			`{"1":{"TotalIPs":281474976710656,"AssignedIPs":0,"ENIs":{"eni-2":{"ID":"eni-2","IsPrimary":false,"IsTrunk":false,"IsEFA":true,"DeviceNumber":1,"AvailableIPv4Cidrs":{},"IPv6Cidrs":{"2001:db8:1::/80":{"Cidr":{"IP":"2001:db8:1::","Mask":"/////////////wAAAAAAAA=="},"IPAddresses":{},"IsPrefix":true,"AddressFamily":""}},"IsExcludedForPodIPs":true,"RouteTableID":12,"SubnetID":"subnet-2"}}}}`,
		},
		"held ENI and held CIDR are left out": {
			[]ipam.ENIState{
				{ENI: ipam.ENI{ID: "eni-1"}, CIDRs: []ipam.CIDRState{{Prefix: netip.MustParsePrefix("10.0.0.1/32"), Held: true}}},
				{ENI: ipam.ENI{ID: "eni-2", Device: 1}, Held: true, CIDRs: []ipam.CIDRState{{Prefix: netip.MustParsePrefix("10.0.0.2/32")}}},
			},
			`{"0":{"TotalIPs":0,"AssignedIPs":0,"ENIs":{"eni-1":{"ID":"eni-1","IsPrimary":false,"IsTrunk":false,"IsEFA":false,"DeviceNumber":0,"AvailableIPv4Cidrs":{},"IPv6Cidrs":{},"IsExcludedForPodIPs":false,"RouteTableID":0,"SubnetID":""}}}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkENIs(t, ipam.Snapshot{ENIs: tt.enis}, []byte(tt.want))
		})
	}
}

// TestUpstream_EveryRecordedAnswer compares each recorded folder and moment, requested as a
// client does, byte for byte.
func TestUpstream_EveryRecordedAnswer(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(recordedDir + "/*/*")
	if err != nil || len(files) < 27 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		path := "/" + strings.Replace(name, "v1-", "v1/", 1)
		v := View{ENIConfigKnown: true}
		switch {
		case strings.HasSuffix(file, ".status"):
			continue // the status 200 beside each answer
		case path == introspect.PathENIs:
			pool, err := introspect.Decode(want)
			if err != nil {
				t.Fatal(err)
			}
			v.Book = bookOf(pool)
		case path == introspect.PathENIConfigs:
			err = json.Unmarshal(want, &v.ENIConfigName)
		case path == introspect.PathNetworkEnv:
			err = json.Unmarshal(want, &v.NetworkEnv)
		case path == introspect.PathIPAMEnv:
			err = json.Unmarshal(want, &v.IPAMEnv)
		case name == "unknown-path":
			checkCommands(t, want, get(t, v, "/v1/pods", nil).Body.Bytes())
			continue
		default:
			t.Errorf("%s: what is it?", file)
		}
		if err != nil {
			t.Fatal(err)
		}
		w := get(t, v, path, nil)
		if w.Code != 200 || !bytes.Equal(w.Body.Bytes(), want) || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %v\n got %s\nwant %s", file, w.Code, w.Header(), w.Body, want)
		}
	}
}

// checkCommands: upstream's paths come first, in any order; ours follow.
func checkCommands(t *testing.T, want, got []byte) {
	t.Helper()
	var theirs, ours introspect.Commands
	if err := errors.Join(json.Unmarshal(want, &theirs), json.Unmarshal(got, &ours)); err != nil {
		t.Fatal(err)
	}
	n := len(theirs.AvailableCommands)
	first := slices.Sorted(slices.Values(ours.AvailableCommands[:n]))
	if n != 4 || !slices.Equal(slices.Sorted(slices.Values(theirs.AvailableCommands)), first) {
		t.Errorf("got %s, want the paths of %s first", got, want)
	}
}

func BenchmarkSummary_Encode(b *testing.B) {
	v := testView()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(Summary(v)); err != nil {
			b.Fatal(err)
		}
	}
}
