package config

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

// FuzzTags: of ADDITIONAL_ENI_TAGS, exactly the tags that are not reserved by the CNI are
// accepted; the others are reported.
func FuzzTags(f *testing.F) {
	for _, s := range []string{`{}`, `{"tag_key":"tag_val"}`, `{"a":"1","a":"2"}`, `{"node.k8s.amazonaws.com/no_manage":"true","b":"c"}`, `{"cluster.k8s.amazonaws.com/name":"x"}`,
		`{"a":1}`, `[]`, `null`, ``, `{"a":"b"} x`, "{\"\xff\":\"\\u0000\"}", `{"":""}`} {
		f.Add(s)
	}
	const variable = "ADDITIONAL_ENI_TAGS"
	f.Fuzz(func(t *testing.T, value string) {
		if value == "" {
			return // treated as unset
		}
		c, problems := Load(env(variable, value))
		var given map[string]string
		if json.Unmarshal([]byte(value), &given) != nil {
			if len(c.AdditionalTags) > 0 || len(problems) != 1 {
				t.Fatalf("%v of %q, problems %v", c.AdditionalTags, value, problems)
			}
			return
		}
		reported := map[string]bool{}
		for _, p := range problems {
			reported[p.Value] = true
		}
		for k, v := range given {
			kept, taken := c.AdditionalTags[k]
			if own := strings.Contains(k, "k8s.amazonaws.com"); taken == own || taken && kept != v || reported[k] != own {
				t.Errorf("%q=%q: taken %t as %q, reported %t", k, v, taken, kept, reported[k])
			}
		}
		if len(c.AdditionalTags)+len(problems) != len(given) {
			t.Errorf("%d tags and %d problems of %d", len(c.AdditionalTags), len(problems), len(given))
		}
	})
}

// FuzzCIDRLists: each item of a list is either accepted, as its network, or reported, in
// order.
func FuzzCIDRLists(f *testing.F) {
	for _, s := range []string{"10.0.0.0/16", "10.0.0.0/8,172.16.0.0/12, 192.168.0.0/16 ,", "10.0.0.1/24", "0.0.0.0/0", "10.0.0.0/33", "10.0.0.0", "2001:db8::/56,10.0.0.0/8",
		"::ffff:10.0.0.0/104", "10.0.0.0/08", "010.0.0.0/8", "", ",", " ", "10.0.0.0/8;11.0.0.0/8", "fe80::%eth0/10"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for variable, field := range map[string]func(*Config) []netip.Prefix{
			"AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS": func(c *Config) []netip.Prefix { return c.ExcludeSNATCIDRs },
			"AWS_EXTERNAL_SERVICE_CIDRS":         func(c *Config) []netip.Prefix { return c.ExternalServiceCIDRs },
		} {
			c, problems := Load(env(variable, value))
			if value == "" {
				continue // treated as unset
			}
			taken := field(&c)
			for item := range strings.SplitSeq(value, ",") {
				item = strings.TrimSpace(item)
				p, err := netip.ParsePrefix(item)
				if err != nil || !p.Addr().Is4() {
					if len(problems) == 0 || problems[0].Value != cmp.Or(item, value) {
						t.Fatalf("%s=%q: %q is not reported: %v", variable, value, item, problems)
					}
					problems = problems[1:]
					continue
				}
				if len(taken) == 0 || taken[0] != p.Masked() {
					t.Fatalf("%s=%q: %q is not taken: %v", variable, value, item, taken)
				}
				taken = taken[1:]
			}
			if len(taken) > 0 || len(problems) > 0 {
				t.Errorf("%s=%q: beside its items %v and %v", variable, value, taken, problems)
			}
		}
	})
}
