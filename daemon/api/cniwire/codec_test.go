package cniwire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"testing/quick"

	"github.com/google/go-cmp/cmp"
)

var sampleAddReply = AddReply{
	Success: true,
	Allocations: []Allocation{
		{IPv4: "10.0.0.21", Device: 1, RouteTable: 2},
		{IPv6: "2001:db8::7", Device: -1},
	},
	UseExternalSNAT:   true,
	VPCv4CIDRs:        []string{"10.0.0.0/16", "", "100.64.0.0/10"},
	VPCv6CIDRs:        []string{"2001:db8::/56"},
	PodVLANID:         7,
	PodENIMAC:         "02:00:00:00:00:01",
	PodENISubnetGW:    "10.0.0.1",
	ParentIfIndex:     3,
	NetworkPolicyMode: "standard",
	Cause:             "pool-dry",
	Detail:            "no free address",
	Transient:         true,
}

var sampleDelReply = DelReply{
	Success: true, Unknown: true,
	Allocations: []Allocation{{IPv4: "10.0.0.21", Device: 1, RouteTable: 2}},
	PodVLANID:   7, NetworkPolicyMode: "strict", Cause: "internal", Detail: "x",
}

var sampleAdd = AddRequest{
	PodName: "web-0", PodNamespace: "default", PodUID: "u", ContainerID: "c", IfName: "eth0",
	NetworkName: "aws-cni", Netns: "/run/netns/x", ClientVersion: "v", RequiresMultiNIC: true,
}

var sampleDel = DelRequest{
	PodName: "web-0", PodNamespace: "default", PodUID: "u", ContainerID: "c", IfName: "eth0",
	NetworkName: "aws-cni", Reason: "PodDeleted", ClientVersion: "v",
}

var samplePolicy = PolicyRequest{
	PodName: "web-0", PodNamespace: "default", ContainerID: "c", Mode: "strict", Interfaces: 2, Delete: true,
}

var samplePolicyReply = PolicyReply{Success: true, Cause: "policy-agent-refused", Detail: "x"}

var sampleCallError = CallError{Answered: true, Text: "rpc error: code = Unknown desc = x"}

// roundTrip frames, reads and decodes v, and compares the result with v.
func roundTrip(t *testing.T, v any) {
	t.Helper()
	var wire []byte
	switch v := v.(type) {
	case *AddRequest:
		wire = AppendAddRequest(nil, v)
	case *DelRequest:
		wire = AppendDelRequest(nil, v)
	case *PolicyRequest:
		wire = AppendPolicyRequest(nil, v)
	case *PolicyReply:
		wire = AppendPolicyReply(nil, v)
	case *CallError:
		wire = AppendCallError(nil, v)
	case *AddReply:
		wire = AppendAddReply(nil, v)
	case *DelReply:
		wire = AppendDelReply(nil, v)
	}
	frame, err := ReadFrame(iotest.OneByteReader(bytes.NewReader(wire)), nil)
	if errors.Is(err, ErrFrameTooLarge) && len(wire)-prefixSize > MaxFrame {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	var got any
	switch v.(type) {
	case *AddRequest:
		var r Request
		r, err = DecodeRequest(frame)
		got = r.Add
	case *DelRequest:
		var r Request
		r, err = DecodeRequest(frame)
		got = r.Del
	case *PolicyRequest:
		var r Request
		r, err = DecodeRequest(frame)
		got = r.Policy
	case *PolicyReply:
		got, err = DecodePolicyReply(frame)
	case *CallError:
		got, err = DecodeCallError(frame)
	case *AddReply:
		got, err = DecodeAddReply(frame)
	case *DelReply:
		got, err = DecodeDelReply(frame)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(v, got); diff != "" {
		t.Errorf("round trip (-sent +received):\n%s", diff)
	}
}

func TestRoundTrip_Samples(t *testing.T) {
	t.Parallel()
	add, del, addReply, delReply := sampleAdd, sampleDel, sampleAddReply, sampleDelReply
	policy, policyReply, callError := samplePolicy, samplePolicyReply, sampleCallError
	for _, v := range []any{
		&add, &del, &addReply, &delReply, &policy, &policyReply, &callError, &PolicyRequest{}, &PolicyReply{}, &CallError{},
		&AddRequest{}, &DelRequest{}, &AddReply{}, &DelReply{},
		&AddReply{Allocations: []Allocation{{}}},
	} {
		roundTrip(t, v)
	}
}

// TestSamplesAreFull fails if a message's field is missing from its sample. One missing from
// the codec fails the round trip.
func TestSamplesAreFull(t *testing.T) {
	t.Parallel()
	for _, v := range []any{sampleAdd, sampleDel, sampleAddReply, sampleDelReply, samplePolicy, samplePolicyReply, sampleCallError} {
		s := reflect.ValueOf(v)
		for i := range s.NumField() {
			if s.Field(i).IsZero() {
				t.Errorf("%T.%s is not set in the sample", v, s.Type().Field(i).Name)
			}
		}
	}
}

func TestRoundTrip_Random(t *testing.T) {
	t.Parallel()
	count := &quick.Config{MaxCount: 400}
	empty := func(list []string) []string { // a list without elements is encoded as absent
		if len(list) == 0 {
			return nil
		}
		return list
	}
	check := func(add AddRequest, del DelRequest, policy PolicyRequest, ar AddReply, dr DelReply, pr PolicyReply, ce CallError) bool {
		ar.VPCv4CIDRs, ar.VPCv6CIDRs = empty(ar.VPCv4CIDRs), empty(ar.VPCv6CIDRs)
		if len(ar.Allocations) == 0 {
			ar.Allocations = nil
		}
		if len(dr.Allocations) == 0 {
			dr.Allocations = nil
		}
		for _, v := range []any{&add, &del, &policy, &ar, &dr, &pr, &ce} {
			roundTrip(t, v)
		}
		return !t.Failed()
	}
	if err := quick.Check(check, count); err != nil {
		t.Error(err)
	}
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	t.Parallel()
	body := append([]byte{byte(kindAddReply)}, 200, 3, 'a', 'b', 'c')
	body = appendBool(body, repSuccess, true)
	body = append(body, 0, 0)
	alloc := append(appendString(nil, allocIPv4, "10.0.0.1"), 99, 1, 0)
	body = appendText(body, repAllocation, alloc)
	got, err := DecodeAddReply(body)
	if err != nil {
		t.Fatal(err)
	}
	want := &AddReply{Success: true, Allocations: []Allocation{{IPv4: "10.0.0.1"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDecode_Malformed(t *testing.T) {
	t.Parallel()
	for name, frame := range map[string][]byte{
		"empty":              {},
		"other kind":         {9},
		"a request":          AppendAddRequest(nil, &sampleAdd)[prefixSize:],
		"length missing":     {byte(kindAddReply), 1},
		"value missing":      {byte(kindAddReply), 1, 1},
		"length overflows":   {byte(kindAddReply), 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"boolean 2":          {byte(kindAddReply), 1, 1, 2},
		"boolean long":       {byte(kindAddReply), 1, 2, 1, 1},
		"integer empty":      {byte(kindAddReply), 6, 0},
		"integer too large":  {byte(kindAddReply), 6, 5, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"integer and more":   {byte(kindAddReply), 6, 2, 1, 1},
		"allocation damaged": {byte(kindAddReply), 2, 2, 1, 9},
	} {
		got, err := DecodeAddReply(frame)
		if !errors.Is(err, ErrMalformed) || got != nil {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if got, err := DecodeCallError([]byte{byte(kindCallError), 1, 1, 2}); !errors.Is(err, ErrMalformed) || got != nil {
		t.Errorf("a damaged error: got %v, %v", got, err)
	}
	if got, err := DecodeCallError(AppendAddReply(nil, &sampleAddReply)[prefixSize:]); got != nil || err != nil {
		t.Errorf("a reply read as an error: %v, %v", got, err)
	}
	if _, err := DecodeRequest(AppendAddReply(nil, &sampleAddReply)[prefixSize:]); !errors.Is(err, ErrMalformed) {
		t.Errorf("a reply read as a request: %v", err)
	}
}

func TestReadFrame_Bounds(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing":        {nil, io.EOF},
		"half a prefix":  {[]byte{0, 0}, io.ErrUnexpectedEOF},
		"no body":        {[]byte{0, 0, 0, 1}, io.ErrUnexpectedEOF},
		"half a body":    {[]byte{0, 0, 0, 2, 1}, io.ErrUnexpectedEOF},
		"one too many":   {[]byte{0, 1, 0, 1}, ErrFrameTooLarge},
		"absurd":         {[]byte{0xff, 0xff, 0xff, 0xff}, ErrFrameTooLarge},
		"another system": {[]byte("GET / HTTP/1.1\r\n"), ErrFrameTooLarge},
	} {
		if _, err := ReadFrame(bytes.NewReader(row.in), nil); !errors.Is(err, row.want) {
			t.Errorf("%s: ReadFrame: %v, want %v", name, err, row.want)
		}
		frame, err := CutFrame(row.in)
		if frame != nil || errors.Is(row.want, ErrFrameTooLarge) != errors.Is(err, ErrFrameTooLarge) {
			t.Errorf("%s: CutFrame: %v, %v", name, frame, err)
		}
	}
	full := append([]byte{0, 1, 0, 0}, make([]byte, MaxFrame)...)
	if frame, err := ReadFrame(bytes.NewReader(full), nil); err != nil || len(frame) != MaxFrame {
		t.Errorf("largest frame: %d bytes, %v", len(frame), err)
	}
	buf := make([]byte, 0, MaxFrame)
	if frame, err := ReadFrame(bytes.NewReader(full), buf); err != nil || &frame[0] != &buf[:1][0] {
		t.Errorf("the caller's buffer was not used: %v", err)
	}
	if frame, err := CutFrame(full); err != nil || len(frame) != MaxFrame {
		t.Errorf("largest frame cut: %d bytes, %v", len(frame), err)
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	b := AppendDelRequest([]byte("before"), &sampleDel)
	rest, ok := strings.CutPrefix(string(b), "before")
	if !ok {
		t.Fatal("the prefix is gone")
	}
	if diff := cmp.Diff(string(AppendDelRequest(nil, &sampleDel)), rest); diff != "" {
		t.Error(diff)
	}
}

func seed(f *testing.F) {
	f.Helper()
	for _, wire := range [][]byte{
		AppendAddRequest(nil, &sampleAdd), AppendDelRequest(nil, &sampleDel),
		AppendAddReply(nil, &sampleAddReply), AppendDelReply(nil, &sampleDelReply),
		AppendAddReply(nil, &AddReply{}), AppendPolicyRequest(nil, &samplePolicy), AppendPolicyReply(nil, &samplePolicyReply),
		AppendCallError(nil, &sampleCallError),
	} {
		f.Add(wire)
	}
	f.Add([]byte{0, 0, 0, 3, 3, 1, 9})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
}

// FuzzDecode: Decode returns either an error or a result, and a result survives a round
// trip.
func FuzzDecode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, wire []byte) {
		frame, err := ReadFrame(bytes.NewReader(wire), nil)
		cut, cutErr := CutFrame(wire)
		if (err == nil) != (cut != nil && cutErr == nil) {
			t.Fatalf("ReadFrame says %v, CutFrame %v %v", err, cut, cutErr)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(frame, cut) {
			t.Fatal("ReadFrame and CutFrame differ")
		}
		r, err := DecodeRequest(frame)
		set := 0
		for _, member := range []bool{r.Add != nil, r.Del != nil, r.Policy != nil} {
			if member {
				set++
			}
		}
		if (err == nil) != (set == 1) || set > 1 {
			t.Fatalf("request %+v, error %v", r, err)
		}
		if r.Policy != nil {
			roundTrip(t, r.Policy)
		}
		if r.Add != nil {
			roundTrip(t, r.Add)
		}
		if r.Del != nil {
			roundTrip(t, r.Del)
		}
		add, err := DecodeAddReply(frame)
		if (err == nil) != (add != nil) {
			t.Fatalf("reply %+v, error %v", add, err)
		}
		if add != nil {
			roundTrip(t, add)
		}
		del, err := DecodeDelReply(frame)
		if (err == nil) != (del != nil) {
			t.Fatalf("reply %+v, error %v", del, err)
		}
		if del != nil {
			roundTrip(t, del)
		}
		policy, err := DecodePolicyReply(frame)
		if (err == nil) != (policy != nil) {
			t.Fatalf("reply %+v, error %v", policy, err)
		}
		if policy != nil {
			roundTrip(t, policy)
		}
		if failed, err := DecodeCallError(frame); err == nil && failed != nil {
			roundTrip(t, failed)
		}
	})
}

// FuzzEncode: any text survives unchanged.
func FuzzEncode(f *testing.F) {
	f.Add("web-0", "default", "10.0.0.1", int32(2), true)
	f.Add("", "\x00\xff", "ü", int32(-1), false)
	f.Fuzz(func(t *testing.T, a, b, c string, n int32, yes bool) {
		roundTrip(t, &AddRequest{PodName: a, ContainerID: b, Netns: c, RequiresMultiNIC: yes})
		roundTrip(t, &DelRequest{PodName: a, ContainerID: b, Reason: c})
		roundTrip(t, &AddReply{Success: yes, Allocations: []Allocation{{IPv4: a, Device: n}, {IPv6: b, RouteTable: n}},
			VPCv4CIDRs: []string{a, b, c}, PodVLANID: n, Detail: c})
		roundTrip(t, &DelReply{Unknown: yes, Allocations: []Allocation{{IPv4: c, RouteTable: n}}, Detail: a})
	})
}

func BenchmarkAddRoundTrip(b *testing.B) {
	reply := AddReply{Success: true, Allocations: []Allocation{{IPv4: "10.0.0.21", Device: 1, RouteTable: 2}}}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf = AppendAddRequest(buf[:0], &sampleAdd)
		if _, err := DecodeRequest(buf[prefixSize:]); err != nil {
			b.Fatal(err)
		}
		buf = AppendAddReply(buf[:0], &reply)
		if _, err := DecodeAddReply(buf[prefixSize:]); err != nil {
			b.Fatal(err)
		}
	}
}
