package cluster_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnictl/daemon/cluster"
)

const key = "k8s.amazonaws.com/eniConfig"

func TestENIConfigName(t *testing.T) {
	t.Parallel()
	type m = map[string]string
	for name, tc := range map[string]struct {
		labels, annotations m
		want                string
	}{
		"unknown node":              {nil, nil, "default"},
		"others":                    {m{"a": "b"}, m{"c": "d"}, "default"},
		"label":                     {m{key: "a"}, nil, "a"},
		"annotation before label":   {m{key: "a"}, m{key: "b"}, "b"},
		"external before all":       {m{key: "a", "vpc.amazonaws.com/externalEniConfig": "c"}, m{key: "b"}, "c"},
		"external is no annotation": {nil, m{"vpc.amazonaws.com/externalEniConfig": "c"}, "default"},
		"an empty annotation wins":  {m{key: "a"}, m{key: ""}, ""},
		"an empty external wins":    {m{key: "a", "vpc.amazonaws.com/externalEniConfig": ""}, m{key: "b"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := cluster.Node{Labels: tc.labels, Annotations: tc.annotations}
			if got := cluster.ENIConfigName(n, key, key); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	zones := cluster.Node{Labels: m{"topology.kubernetes.io/zone": "us-west-2a"}, Annotations: m{"mine": "x"}}
	if got := cluster.ENIConfigName(zones, "other", "topology.kubernetes.io/zone"); got != "us-west-2a" {
		t.Errorf("by a key of one's own: %q", got)
	}
}

// groups returns n different security group IDs.
func groups(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("sg-%017x", i))
	}
	return out
}

func TestParseENIConfig(t *testing.T) {
	t.Parallel()
	const subnet = "subnet-0123456789abcdef0"
	for name, tc := range map[string]struct {
		name, subnet string
		groups       []string
		want         []string
		err          string
	}{
		"no groups":      {"a", subnet, nil, nil, ""},
		"groups":         {"a", subnet, groups(16), groups(16), ""},
		"twice the same": {"a", subnet, append(groups(16), groups(16)...), groups(16), ""},
		"old ids":        {"a", "subnet-01234567", []string{"sg-01234567"}, []string{"sg-01234567"}, ""},
		"too many":       {"a", subnet, groups(17), nil, "more than 16"},
		"no name":        {"", subnet, nil, nil, "its name is empty"},
		"no subnet":      {"a", "", nil, nil, "want a subnet id"},
		"no subnet id":   {"a", "subnet-XYZ", nil, nil, `is "subnet-XYZ"`},
		"with a space":   {"a", subnet + " ", nil, nil, "want a subnet id"},
		"with a line":    {"a", subnet + "\n", nil, nil, "want a subnet id"},
		"long":           {"a", strings.Repeat("subnet-", 1000), nil, nil, "(7000 bytes)"},
		"no group id":    {"a", subnet, []string{"default"}, nil, `has "default"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cluster.ParseENIConfig(tc.name, tc.subnet, tc.groups)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) || len(err.Error()) > 300 {
					t.Errorf("error %v, want %q and few bytes", err, tc.err)
				}
				return
			}
			want := cluster.ENIConfig{Name: tc.name, Subnet: tc.subnet, SecurityGroups: tc.want}
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func FuzzParseENIConfig(f *testing.F) {
	f.Add("a", "subnet-0123456789abcdef0", "sg-01234567,sg-0123456789abcdef0")
	f.Add("", "subnet-01234567", "")
	f.Add("a", "subnet-", "sg-01234567,")
	f.Add("é\n", "subnet-01234567", "sg-01234567,sg-01234567")
	f.Fuzz(func(t *testing.T, name, subnet, list string) {
		in := strings.Split(list, ",")
		got, err := cluster.ParseENIConfig(name, subnet, in)
		if err != nil {
			if !cmp.Equal(got, cluster.ENIConfig{}) {
				t.Errorf("both %+v and %v", got, err)
			}
			return
		}
		if got.Name != name || got.Subnet != subnet || len(subnet) > len("subnet-")+17 || strings.Trim(strings.TrimPrefix(subnet, "subnet-"), "0123456789abcdef") != "" {
			t.Errorf("%+v of %q, %q", got, name, subnet)
		}
		for i, g := range got.SecurityGroups {
			if !slices.Contains(in, g) || slices.Contains(got.SecurityGroups[:i], g) || !strings.HasPrefix(g, "sg-") {
				t.Errorf("group %q out of %q", g, in)
			}
		}
		for _, g := range in {
			if !slices.Contains(got.SecurityGroups, g) {
				t.Errorf("group %q is lost", g)
			}
		}
	})
}

// TestENIConfigName_Long: an invalid long name stays invalid, and is cut instead of kept
// whole.
func TestENIConfigName_Long(t *testing.T) {
	t.Parallel()
	for _, length := range []int{253, 254, 200 << 10} {
		n := cluster.Node{Annotations: map[string]string{"key": strings.Repeat("a", length)}}
		if got := len(cluster.ENIConfigName(n, "key", "label")); got != min(length, 254) {
			t.Errorf("of a name of %d bytes %d are kept", length, got)
		}
	}
}
