package imds

import (
	"net/netip"
	"strings"
	"testing"
)

var listings = []string{"", "\n", "02:fa:4e:00:00:01/\n02:fa:4e:00:00:02/", "02:FA:4E:00:00:01/", "02-fa-4e-00-00-01/", "10.0.0.4\n10.0.0.5\n", "10.0.0.16/28", "2001:db8::4", "2001:db8:0:1:1::/80",
	"device-number\ninterface-id\nipv6s\nlocal-ipv4s\n", "a b", "\r\n", "\x00", "::ffff:10.0.0.1", "0.1.2.3", "fe80::1%eth0", "10.0.0.0/016", strings.Repeat("x\n", 2000)}

func seedListings(f *testing.F) {
	for _, s := range listings {
		f.Add(s)
	}
}

func FuzzParseMACs(f *testing.F) {
	seedListings(f)
	f.Fuzz(func(t *testing.T, body string) {
		macs, err := parseMACs("p", body)
		if err != nil && macs != nil {
			t.Errorf("%v with %q", err, macs)
		}
		for _, m := range macs {
			if len(m) != 17 || strings.ContainsAny(m, "/?#%. \n") {
				t.Errorf("%q is put into paths", m)
			}
		}
		if again, err2 := parseMACs("p", strings.Join(macs, "/\n")); err == nil && (err2 != nil || len(again) != len(macs)) {
			t.Errorf("%q does not survive: %v", macs, err2)
		}
	})
}

func FuzzParseNames(f *testing.F) {
	seedListings(f)
	f.Fuzz(func(t *testing.T, body string) {
		names, err := parseNames("p", body)
		if (err == nil) != (len(names) > 0) || len(names) > maxLines {
			t.Errorf("%d names, %v: a listing that says nothing must be an error", len(names), err)
		}
	})
}

func FuzzParseAddresses(f *testing.F) {
	seedListings(f)
	f.Fuzz(func(t *testing.T, body string) {
		for _, ipv6 := range []bool{false, true} {
			all, err := parseAddrs("p", body, ipv6)
			if (err != nil && all != nil) || len(all) > maxLines {
				t.Errorf("%v with %v", err, all)
			}
			seen := map[netip.Addr]bool{}
			for _, a := range all {
				if a.Is6() != ipv6 || a.Zone() != "" || seen[a] || !a.IsGlobalUnicast() || netip.MustParsePrefix("0.0.0.0/8").Contains(a) {
					t.Errorf("accepted %s", a)
				}
				seen[a] = true
			}
		}
	})
}

func FuzzParseCIDRs(f *testing.F) {
	seedListings(f)
	f.Fuzz(func(t *testing.T, body string) {
		for _, kind := range []cidrKind{ipv4Blocks, ipv4Prefixes, ipv6Blocks, ipv6Prefixes} {
			all, err := parseCIDRs("p", body, kind)
			if (err != nil && all != nil) || len(all) > maxLines {
				t.Errorf("%v with %v", err, all)
			}
			for _, p := range all {
				if p.Masked() != p || p.Addr().Is6() != kind.ipv6 || (kind.bits != 0 && p.Bits() != kind.bits) {
					t.Errorf("accepted %s", p)
				}
			}
		}
	})
}

func FuzzParseDocument(f *testing.F) {
	seedListings(f)
	f.Add(`{"region":"us-west-2","availabilityZone":"us-west-2a","instanceId":"i-0a","instanceType":"m5.large","privateIp":"10.0.0.4"}`)
	f.Add(`{"region":1}`)
	f.Fuzz(func(t *testing.T, body string) {
		id, err := parseDocument(body)
		if err == nil && (id.Region == "" || id.InstanceID == "" || !id.PrimaryIPv4.Is4()) {
			t.Errorf("accepted %+v", id)
		}
	})
}

func FuzzParseGroups(f *testing.F) {
	seedListings(f)
	f.Add("sg-0a\nsg-0b")
	f.Fuzz(func(t *testing.T, body string) {
		groups, err := parseGroups("p", body)
		if err != nil && groups != nil || len(groups) > maxGroups {
			t.Errorf("%v with %d groups", err, len(groups))
		}
		for _, g := range groups {
			if rest, ok := strings.CutPrefix(g, "sg-"); !ok || strings.Trim(rest, "0123456789abcdef") != "" {
				t.Errorf("accepted %q", g)
			}
		}
	})
}
