package introspect

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func recorded(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "recorded", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestDecode_RecordedCounts(t *testing.T) {
	t.Parallel()
	type counts struct{ ENIs, Total, Assigned, Cooling, Free, Prefixes, FreePrefixes int }
	tests := []struct {
		file string
		mode string
		want counts
	}{
		{"secondary/v1-enis.before.json", ModeSecondaryIP, counts{1, 9, 0, 0, 9, 0, 0}},
		{"secondary/v1-enis.three-pods.json", ModeSecondaryIP, counts{1, 9, 3, 0, 6, 0, 0}},
		{"secondary/v1-enis.one-deleted.json", ModeSecondaryIP, counts{1, 9, 2, 1, 6, 0, 0}},
		{"two-enis/v1-enis.before.json", ModeSecondaryIP, counts{2, 9, 0, 0, 9, 0, 0}},
		{"two-enis/v1-enis.one-deleted.json", ModeSecondaryIP, counts{2, 18, 2, 1, 15, 0, 0}},
		{"prefix/v1-enis.before.json", ModePrefix, counts{1, 16, 0, 0, 16, 1, 1}},
		{"prefix/v1-enis.one-deleted.json", ModePrefix, counts{1, 16, 2, 1, 13, 1, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			p, err := Decode(recorded(t, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			p.Recount(time.Date(2026, 11, 21, 3, 0, 18, 0, time.UTC), 30*time.Second)
			if tt.file == "two-enis/v1-enis.one-deleted.json" {
				p.Recount(time.Date(2026, 11, 21, 3, 0, 50, 0, time.UTC), 30*time.Second)
			}
			if len(p.Cards) != 1 || p.Cards[0].Mode != tt.mode {
				t.Fatalf("cards %+v, want one in mode %s", p.Cards, tt.mode)
			}
			c := p.Cards[0]
			got := counts{*c.ENIs, c.Total, c.Assigned, *c.Cooling, c.Free, *c.Prefixes, *c.FreePrefixes}
			if tt.file == "two-enis/v1-enis.before.json" {
				tt.want.Total, tt.want.Free = got.Total, got.Total
				if got.Total < 10 {
					t.Errorf("total %d, want the addresses of two ENIs", got.Total)
				}
			}
			if got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestDecode_Record(t *testing.T) {
	t.Parallel()
	p, err := Decode(recorded(t, "prefix/v1-enis.one-deleted.json"))
	if err != nil {
		t.Fatal(err)
	}
	p.Recount(time.Date(2026, 11, 21, 3, 0, 20, 0, time.UTC), 30*time.Second)
	at := func(s string) *time.Time {
		v, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return &v
	}
	table := 254
	want := NodeENI{
		ID: "eni-0fa4e000000000001", SubnetID: "subnet-0fa4e000000000001", Primary: true, RouteTable: &table,
		Total: 16, Assigned: 2, Cooling: 1, Free: 13, Prefixes: 1,
		CIDRs: []NodeCIDR{{
			CIDR: netip.MustParsePrefix("10.0.0.16/28"), Total: 16, Assigned: 2, Cooling: 1, Free: 13,
			Addresses: []NodeAddress{
				{Address: netip.MustParseAddr("10.0.0.16"), State: AddressAssigned, PodNamespace: "default", PodName: "web-0", AssignedAt: at("2026-11-21T03:00:11.051920878Z")},
				{Address: netip.MustParseAddr("10.0.0.17"), State: AddressAssigned, PodNamespace: "default", PodName: "web-1", AssignedAt: at("2026-11-21T03:00:11.085439936Z")},
				{Address: netip.MustParseAddr("10.0.0.18"), State: AddressCooling, AssignedAt: at("2026-11-21T03:00:11.110952225Z"), UnassignedAt: at("2026-11-21T03:00:11.351072087Z")},
			},
		}},
	}
	if diff := cmp.Diff(want, p.ENIs[0], cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("ENI (-want +got):\n%s", diff)
	}
}

// oneCIDR returns a /v1/enis body with one ENI that holds the given CIDR document.
func oneCIDR(doc string) string {
	return `{"0":{"ENIs":{"eni-1":{"ID":"eni-1","AvailableIPv4Cidrs":{` + doc + `}}}}}`
}

func TestDecode_Refuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		want string
	}{
		"empty":              {"", "not JSON"},
		"half":               {`{"0":{"TotalIPs":9`, "not JSON"},
		"html":               {"<html>", "not JSON"},
		"array":              {"[]", "at the top: unexpected JSON array"},
		"null":               {"null", "null where an object"},
		"commands":           {`{"AvailableCommands":["/v1/enis"]}`, "does not know this path"},
		"not a card":         {`{"eth0":{}}`, "not a network card index"},
		"negative card":      {`{"-1":{}}`, "not a network card index"},
		"card 01":            {`{"01":{}}`, "not a network card index"},
		"card 64":            {`{"64":{}}`, "not a network card index"},
		"no mask":            {oneCIDR(`"x":{"Cidr":{"IP":"10.0.0.1"}}`), "not a network mask"},
		"mask with holes":    {oneCIDR(`"x":{"Cidr":{"IP":"10.0.0.1","Mask":"/wD/AA=="}}`), "not a network mask"},
		"/16":                {oneCIDR(`"10.0.0.0/16":{}`), "neither an address nor an aligned"},
		"unaligned /28":      {oneCIDR(`"10.0.0.1/28":{}`), "neither an address nor an aligned"},
		"address outside":    {oneCIDR(`"10.0.0.1/32":{"IPAddresses":{"10.0.0.2":{}}}`), "outside of it"},
		"address twice":      {oneCIDR(`"10.0.0.1/32":{"IPAddresses":{"a":{"Address":"10.0.0.1"},"b":{"Address":"10.0.0.1"}}}`), "given twice"},
		"no address":         {oneCIDR(`"10.0.0.1/32":{"IPAddresses":{"pod":{}}}`), "parse address"},
		"CIDR twice":         {oneCIDR(`"10.0.0.1/32":{},"x":{"Cidr":{"IP":"10.0.0.1","Mask":"/////w=="}}`), "appears twice"},
		"long pod name":      {oneCIDR(`"10.0.0.1/32":{"IPAddresses":{"10.0.0.1":{"IPAMMetadata":{"k8sPodName":"` + strings.Repeat("x", 300) + `"}}}}`), "longer than Kubernetes"},
		"ENI on two cards":   {`{"0":{"ENIs":{"eni-1":{}}},"1":{"ENIs":{"eni-1":{}}}}`, "appears twice"},
		"time is not a time": {oneCIDR(`"10.0.0.1/32":{"IPAddresses":{"10.0.0.1":{"AssignedTime":"now"}}}`), `card 0 ENI "eni-1": CIDR "10.0.0.1/32": address 10.0.0.1: AssignedTime: "now" is not a time`},
		"card and no card":   {`{"0":{},"TotalIPs":1}`, "both TotalIPs and network card 0"},
		"two forms":          {`{"ENIs":{"eni-1":{"IPv4Addresses":{},"AvailableIPv4Cidrs":{}}}}`, "both IPv4Addresses, of v1.8, and CIDRs"},
		"two forms below":    {`{"ENIs":{"eni-1":{"AvailableIPv4Cidrs":{"10.0.0.1/32":{"IPv4Addresses":{},"IPAddresses":{}}}}}}`, "both IPv4Addresses, of v1.9, and IPAddresses"},
		"IPv6 among IPv4":    {`{"ENIs":{"eni-1":{"IPv4Addresses":{"2001:db8::1":{}}}}}`, "not of IPv4"},
		"old address twice":  {`{"ENIs":{"eni-1":{"IPv4Addresses":{"a":{"Address":"10.0.0.1"},"b":{"Address":"10.0.0.1"}}}}}`, "appears twice"},
		"member twice":       {`{"0":{"ENIs":{"eni-1":{"DeviceNumber":1,"DeviceNumber":2}}}}`, "0.ENIs.eni-1.DeviceNumber is given twice"},
		"in either case":     {`{"0":{"ENIs":{},"enis":{}}}`, "0.enis is given twice"},
		"long s":             {`{"0":{"AssignedIPs":1,"A\u017fsignedIPs":1}}`, "is given twice"},
		"key twice":          {oneCIDR(`"10.0.0.1/32":{},"10.0.0.1\/32":{}`), "is given twice"},
		"deep":               {`{"0":` + strings.Repeat(`{"x":`, 40) + `1` + strings.Repeat(`}`, 41), "0.x.x.x.x.x.x.x.x.x.x.x.x.x.x.x is nested more than 16 levels deep"},
		"deep lists":         {strings.Repeat(`[`, 9000) + strings.Repeat(`]`, 9000), "nested more than 16"},
		"wrong type":         {`{"0":{"ENIs":{"eni-1":{"IsPrimary":"yes"}}}}`, "at 0.ENIs.eni-1.IsPrimary: unexpected JSON string"},
		"list":               {`{"0":{"ENIs":[1]}}`, "at 0.ENIs: unexpected JSON array"},
		"out of range":       {`{"0":{"TotalIPs":99999999999999999999}}`, "at 0.TotalIPs: unexpected JSON number 99999999999999999999"},
		"fraction":           {`{"0":{"ENIs":{"e":{"DeviceNumber":0.5}}}}`, "at 0.ENIs.e.DeviceNumber: unexpected JSON number 0.5"},
		"device":             {`{"0":{"ENIs":{"e":{"DeviceNumber":-1}}}}`, "DeviceNumber is -1"},
		"route table":        {`{"0":{"ENIs":{"e":{"RouteTableID":-1}}}}`, "RouteTableID is -1"},
		"mask of no base64":  {oneCIDR(`"x":{"Cidr":{"IP":"10.0.0.1","Mask":"%"}}`), "not a network mask"},
		"zone":               {oneCIDR(`"fe80::1%eth0/128":{}`), "parse CIDR"},
		"long id":            {`{"0":{"ENIs":{"` + strings.Repeat("e", 300) + `":{}}}}`, "a name of 300 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := Decode([]byte(tt.body))
			if err == nil || p != nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %+v, %v; want an error with %q", p, err, tt.want)
			}
		})
	}
	if _, err := Decode(make([]byte, MaxBody+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("8 MiB and one: %v", err)
	}
	if _, err := Decode([]byte(`{"AvailableCommands":[]}`)); !errors.Is(err, ErrCommands) {
		t.Errorf("commands: %v", err)
	}
}

func TestDecode_TooManyCIDRs(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"0":{"ENIs":{"eni-1":{"IPv6Cidrs":{`)
	for i := range maxCIDRs + 1 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"2001:db8:0:0:%x::/80":{}`, i)
	}
	b.WriteString(`}}}}}`)
	if _, err := Decode([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "more than 16384 CIDRs") {
		t.Errorf("got %v", err)
	}
}

func TestRecount_CooldownEdge(t *testing.T) {
	t.Parallel()
	body := oneCIDR(`"10.0.0.1/32":{"IPAddresses":{"10.0.0.1":{"AssignedTime":"2026-01-01T00:00:00Z","UnassignedTime":"2026-01-01T00:01:00Z"}}}`)
	for offset, want := range map[time.Duration]string{
		30 * time.Second: AddressCooling, 30*time.Second + 1: AddressFree, -time.Second: AddressCooling,
	} {
		p, err := Decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		p.Recount(time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC).Add(offset), 30*time.Second)
		if got := p.ENIs[0].CIDRs[0].Addresses[0].State; got != want {
			t.Errorf("%s after: %s, want %s", offset, got, want)
		}
	}
}

func TestRecount_ExcludedENI(t *testing.T) {
	t.Parallel()
	p, err := Decode([]byte(`{"0":{"ENIs":{
		"eni-1":{"AvailableIPv4Cidrs":{"10.0.0.1/32":{}}},
		"eni-2":{"DeviceNumber":1,"IsExcludedForPodIPs":true,"AvailableIPv4Cidrs":{"10.0.0.2/32":{},"10.0.0.16/28":{}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	c := p.Cards[0]
	if *c.ENIs != 2 || c.Total != 1 || c.Free != 1 || *c.Prefixes != 0 || p.ENIs[1].Total != 17 {
		t.Errorf("card %+v, ENI %+v", c, p.ENIs[1])
	}
}

// TestDecode_ErrorsAreShort: a node's answer cannot fill a screen through an error.
func TestDecode_ErrorsAreShort(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\u001b[2J", 5000)
	for _, body := range []string{
		`{"` + long + `":{}}`,
		`{"0":{"ENIs":{"` + long + `":{}}}}`,
		`{"0":{"ENIs":{"e":{"` + long + `":1,"` + long + `":1}}}}`,
		`{"0":{"ENIs":{"e":{"AvailableIPv4Cidrs":{"` + long + `":{}}}}}}`,
		`{"0":{"ENIs":{"e":{"AvailableIPv4Cidrs":{"10.0.0.1/32":{"IPAddresses":{"` + long + `":{}}}}}}}}`,
		`{"0":{"ENIs":{"e":{"AvailableIPv4Cidrs":{"10.0.0.1/32":{"IPAddresses":{"10.0.0.1":{"AssignedTime":"` + long + `"}}}}}}}}`,
		`{"0":{"TotalIPs":` + strings.Repeat("9", 5000) + `}}`,
	} {
		_, err := Decode([]byte(body))
		if err == nil || len(err.Error()) > 600 || strings.ContainsRune(err.Error(), 0x1b) {
			t.Errorf("%.40q: %v", body, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/recorded/*/v1-enis.*.json")
	if err != nil || len(files) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	shapes, err := filepath.Glob("testdata/shapes/*.json")
	if err != nil || len(shapes) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, file := range shapes {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"AvailableCommands":["/v1/enis"]}`))
	f.Add([]byte(`{"1":{"ENIs":{"e":{"IPv6Cidrs":{"2001:db8::/80":{"Cidr":{"IP":"2001:db8::","Mask":"/////////////wAAAAAAAA=="}}}}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := Decode(body)
		if (err == nil) == (p == nil) {
			t.Fatalf("pool %v and error %v", p, err)
		}
		if p == nil {
			return
		}
		p.Recount(time.Date(2026, 11, 21, 3, 0, 20, 0, time.UTC), 30*time.Second)
		for _, e := range p.ENIs {
			if e.Assigned < 0 || e.Cooling < 0 || e.Free < 0 || e.Total != e.Assigned+e.Cooling+e.Free {
				t.Fatalf("counts do not add up: %+v", e)
			}
		}
		for _, c := range p.Cards {
			if c.Total < 0 || c.Total != c.Assigned+*c.Cooling+c.Free {
				t.Fatalf("counts do not add up: %+v", c)
			}
		}
	})
}
