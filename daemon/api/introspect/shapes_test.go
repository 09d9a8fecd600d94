package introspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// words describes a pool as text: its cards, ENIs and CIDRs, and the state of each recorded
// address.
func (p *Pool) words() string {
	var b strings.Builder
	fmt.Fprint(&b, p.Shape)
	for _, c := range p.Cards {
		fmt.Fprintf(&b, "\ncard %d %s: %d of %d, %d cooling", c.Card, c.Mode, c.Assigned, c.Total, *c.Cooling)
	}
	for _, e := range p.ENIs {
		fmt.Fprintf(&b, "\n%s at %d/%d", e.ID, e.Card, e.Device)
		for _, f := range []struct {
			set  bool
			word string
		}{{e.Primary, "primary"}, {e.Trunk, "trunk"}, {e.EFA, "EFA"}, {e.Excluded, "excluded"}, {e.SubnetID != "", e.SubnetID}} {
			if f.set {
				b.WriteString(" " + f.word)
			}
		}
		if e.RouteTable != nil {
			fmt.Fprintf(&b, " table %d", *e.RouteTable)
		}
		for _, c := range e.CIDRs {
			fmt.Fprintf(&b, "\n  %s %d of %d", c.CIDR, c.Assigned, c.Total)
			for _, a := range c.Addresses {
				fmt.Fprintf(&b, ", %s %s %s/%s since %s", a.Address, a.State, a.PodNamespace, a.PodName, at(a.AssignedAt))
				if a.UnassignedAt != nil {
					fmt.Fprintf(&b, " to %s", at(a.UnassignedAt))
				}
			}
		}
	}
	for _, m := range p.Mismatches {
		fmt.Fprintf(&b, "\ncard %d says %s %d, holds %d", m.Card, m.Member, m.Reported, m.Counted)
	}
	return b.String()
}

func at(t *time.Time) string {
	if t == nil {
		return "?"
	}
	return t.Format("15:04:05")
}

// TestDecode_Shapes reads each release's format (testdata/shapes, written by hand after
// upstream's answers of that release).
func TestDecode_Shapes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"v1.7.json": `v1.8
card 0 secondary-ip: 1 of 4, 1 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary
  10.0.3.41/32 1 of 1, 10.0.3.41 assigned / since ?
  10.0.3.42/32 0 of 1, 10.0.3.42 cooling / since ? to 09:14:20
  10.0.3.43/32 0 of 1
eni-0b2c3d4e5f6071829 at 0/2 trunk
  10.0.3.51/32 0 of 1`,
		"v1.9.json": `v1.9
card 0 mixed: 2 of 18, 1 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary
  10.0.3.41/32 1 of 1, 10.0.3.41 assigned / since ?
  10.0.3.42/32 0 of 1, 10.0.3.42 cooling / since ? to 09:14:20
  10.0.3.64/28 1 of 16, 10.0.3.65 assigned / since ?`,
		"v1.10.json": `v1.10
card 0 prefix: 1 of 281474976710656, 0 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary
  2001:db8:1:2:3::/80 1 of 281474976710656, 2001:db8:1:2:3::7 assigned / since ?`,
		"v1.15-prefixes.json": `v1.10
card 0 prefix: 3 of 281474976710688, 1 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary
  10.0.3.64/28 2 of 16, 10.0.3.64 assigned shop/cart-7d9f-abcde since 09:14:03, 10.0.3.65 cooling / since 09:10:00 to 09:14:20, 10.0.3.79 assigned shop/cart-7d9f-fghij since 09:14:05
  2001:db8:1:2:3::/80 1 of 281474976710656, 2001:db8:1:2:3::9 assigned shop/till-0 since 09:14:07
eni-0b2c3d4e5f6071829 at 0/1 trunk
  10.0.3.96/28 0 of 16`,
		"v1.19.json": `v1.10
card 0 secondary-ip: 1 of 3, 1 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary
  10.0.3.41/32 1 of 1, 10.0.3.41 assigned shop/cart-7d9f-abcde since 09:14:03
  10.0.3.42/32 0 of 1, 10.0.3.42 cooling / since 09:10:00 to 09:14:20
  10.0.3.43/32 0 of 1`,
		"v1.20.json": `v1.20
card 0 secondary-ip: 1 of 2, 0 cooling
card 1 prefix: 1 of 16, 0 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary
  10.0.3.41/32 1 of 1, 10.0.3.41 assigned shop/cart-7d9f-abcde since 09:14:03
  10.0.3.43/32 0 of 1
eni-0b2c3d4e5f6071829 at 1/1 EFA table 10101
  10.0.5.16/28 1 of 16, 10.0.5.16 assigned shop/cart-7d9f-abcde since 09:14:03`,
		"v1.21.json": `v1.20
card 0 secondary-ip: 1 of 2, 0 cooling
card 1 prefix: 1 of 16, 0 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary table 254
  10.0.3.41/32 1 of 1, 10.0.3.41 assigned shop/cart-7d9f-abcde since 09:14:03
  10.0.3.43/32 0 of 1
eni-0b2c3d4e5f6071829 at 1/1 EFA table 10101
  10.0.5.16/28 1 of 16, 10.0.5.16 assigned shop/cart-7d9f-abcde since 09:14:03`,
		"v1.22.json": `v1.22
card 0 secondary-ip: 1 of 2, 0 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary subnet-0123456789abcdef0 table 254
  10.0.3.41/32 1 of 1, 10.0.3.41 assigned shop/cart-7d9f-abcde since 09:14:03
  10.0.3.42/32 0 of 1
eni-0b2c3d4e5f6071829 at 0/1 excluded subnet-0fedcba9876543210 table 2
  10.0.9.42/32 0 of 1
card 0 says TotalIPs 4, holds 3
card 0 says AssignedIPs -1, holds 1`,
		"v1.22-prefixes.json": `v1.22
card 0 prefix: 1 of 32, 1 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary excluded subnet-0fedcba9876543210 table 254
  10.0.9.48/28 1 of 16, 10.0.9.50 assigned shop/till-0 since 09:14:05
eni-0b2c3d4e5f6071829 at 0/1 subnet-0123456789abcdef0 table 2
  10.0.3.64/28 1 of 16, 10.0.3.64 assigned shop/cart-7d9f-abcde since 09:14:03, 10.0.3.70 cooling / since 09:10:00 to 09:14:20
  10.0.3.80/28 0 of 16`,
		"v1.23.json": `v1.23
card 0 secondary-ip: 1 of 3, 1 cooling
eni-0a1b2c3d4e5f60718 at 0/0 primary subnet-0123456789abcdef0 table 254
  10.0.3.41/32 1 of 1, 10.0.3.41 assigned shop/cart-7d9f-abcde since 09:14:03
  10.0.3.42/32 0 of 1, 10.0.3.42 cooling / since 09:10:00 to 09:14:20
  10.0.3.43/32 0 of 1`,
	}
	files, err := filepath.Glob("testdata/shapes/*.json")
	if err != nil || len(files) != len(want) {
		t.Errorf("%d files for %d wanted, %v", len(files), len(want), err)
	}
	for name, words := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join("testdata", "shapes", name))
			if err != nil {
				t.Fatal(err)
			}
			p, err := Decode(body)
			if err != nil {
				t.Fatal(err)
			}
			p.Recount(time.Date(2026, 8, 21, 9, 14, 30, 0, time.UTC), 30*time.Second)
			if got := p.words(); got != words {
				t.Errorf("got\n%s\nwant\n%s", got, words)
			}
		})
	}
}

func TestDecode_EmptyShapes(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Shape{
		`{}`: ShapeBlanked, `{"0":{"TotalIPs":0,"AssignedIPs":0,"ENIs":{}}}`: ShapeBlanked, `{"0":{"ENIs":null}}`: ShapeBlanked,
		`{"TotalIPs":0,"AssignedIPs":0,"ENIs":{}}`:                          ShapeFamilies,
		`{"ENIs":{"eni-1":{"AvailableIPv4Cidrs":{}}}}`:                      ShapeCIDRs,
		`{"ENIs":{"eni-1":{"AvailableIPv4Cidrs":{},"IPv6Cidrs":{}}}}`:       ShapeFamilies,
		`{"ENIs":{"eni-1":{"IPv4Addresses":{}}}}`:                           ShapeAddresses,
		`{"0":{"ENIs":{"eni-1":{"AvailableIPv4Cidrs":{}}}}}`:                ShapeCards,
		`{"0":{"ENIs":{"eni-1":{"AvailableIPv4Cidrs":{},"SubnetID":""}}}}`:  ShapeBlanked,
		`{"0":{"ENIs":{"eni-1":{"SubnetID":null}}},"1":{"ENIs":{"e":{}}}}`:  ShapeCards,
		`{"TotalIPs":7,"ENIs":{"eni-1":{"IPv4Addresses":{"10.0.0.1":{}}}}}`: ShapeAddresses,
	} {
		p, err := Decode([]byte(body))
		if err != nil || p.Shape != want {
			t.Errorf("%s: %+v, %v; want %s", body, p, err, want)
		}
	}
}

// TestDecode_Recorded: the recorded answers are v1.23's, and their counters match.
func TestDecode_Recorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/recorded/*/v1-enis.*.json")
	if err != nil || len(files) != 12 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Decode(body)
		if err != nil || p.Shape != ShapeBlanked || len(p.Mismatches) > 0 {
			t.Errorf("%s: %+v, %v", file, p, err)
		}
	}
}

// repeated looks for duplicate members with the standard library's tokens. Names must match
// exactly.
func repeated(body []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // accepts numbers that no float can hold
	type open struct {
		object bool
		value  bool // the next token is a value
		seen   map[string]bool
	}
	var stack []open
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return false
		}
		if err != nil {
			panic(err)
		}
		top := len(stack) - 1
		if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
			stack = stack[:top]
			continue
		}
		if top >= 0 && stack[top].object {
			if !stack[top].value {
				name := token.(string)
				if stack[top].seen[name] {
					return true
				}
				stack[top].seen[name] = true
				stack[top].value = true
				continue
			}
			stack[top].value = false
		}
		if d, ok := token.(json.Delim); ok {
			stack = append(stack, open{object: d == '{', seen: map[string]bool{}})
		}
	}
}

// FuzzStructure compares checkStructure with the standard library's tokens.
func FuzzStructure(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"b":{"a":[1,{"a":2},"x\"y{"]},"A":2}`, `{"a\u0062":1,"ab":2}`, `[[],{},"]",null]`, `"x"`, `1`, `{"k":1,"K":2}`,
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"\ud800":1,"\ufffd":2,"m":1}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		_, err := checkStructure(body)
		if err == nil && repeated(body) {
			t.Fatalf("%s: a member twice was not seen", body)
		}
		if err != nil && (len(err.Error()) > 60*16*4 || err.Error() == "") {
			t.Fatalf("error %v", err)
		}
		for offset := range min(len(body), 64) {
			_ = placeOf(body, int64(offset)).String()
		}
	})
}

// node750 is a node with 15 ENIs of 50 addresses, all assigned.
func node750() []byte {
	doc := ENIs{"0": {TotalIPs: 750, AssignedIPs: 750, ENIs: map[string]ENI{}}}
	for e := range 15 {
		id := fmt.Sprintf("eni-0%016d", e)
		eni := ENI{ID: id, IsPrimary: e == 0, DeviceNumber: e, AvailableIPv4Cidrs: map[string]CIDR{}, IPv6Cidrs: map[string]CIDR{}, RouteTableID: e + 1, SubnetID: "subnet-0123456789abcdef0"}
		for a := range 50 {
			addr := fmt.Sprintf("10.0.%d.%d", e, a)
			at := time.Date(2026, 11, 21, 3, 0, a, 123456789, time.UTC)
			eni.AvailableIPv4Cidrs[addr+"/32"] = CIDR{
				Cidr: IPNet{IP: addr, Mask: []byte{255, 255, 255, 255}},
				IPAddresses: map[string]Address{addr: {
					Address: addr, IPAMKey: IPAMKey{NetworkName: "aws-cni"}, AssignedTime: at,
					IPAMMetadata: IPAMMetadata{PodNamespace: "default", PodName: fmt.Sprintf("web-%d-%d", e, a), Interfaces: 1},
				}},
			}
		}
		doc["0"].ENIs[id] = eni
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}

// BenchmarkUnmarshal_750Addresses measures the standard library alone, for comparison.
func BenchmarkUnmarshal_750Addresses(b *testing.B) {
	body := node750()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		var doc ENIs
		if err := json.Unmarshal(body, &doc); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode_750Addresses(b *testing.B) {
	body := node750()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(body); err != nil {
			b.Fatal(err)
		}
	}
}
