package pages

import (
	"testing"

	"cnictl/daemon/fleet/store"
)

func TestNamesLeaveOutTheDomainOfAll(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  []string
		want string
	}{
		"one domain": {[]string{"a.x.internal", "b.x.internal"}, "a"},
		"two":        {[]string{"a.x.internal", "b.y.internal"}, "a.x.internal"},
		"without":    {[]string{"a.x.internal", "b"}, "a.x.internal"},
		"addresses":  {[]string{"10.0.0.1", "11.0.0.1"}, "10.0.0.1"},
		"dot first":  {[]string{".a.x"}, ".a.x"},
		"hostile":    {[]string{"a\x1b[2J.x", "b.x"}, `a\x1b[2J`},
	} {
		var nodes []*store.Node
		for _, s := range c.all {
			n := &store.Node{}
			n.Metadata.Name = s
			nodes = append(nodes, n)
		}
		var names NodeNames
		names.Learn(nodes)
		if got := names.Short(c.all[0]); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got, ok := names.Cell(c.all[0], "node"); !ok || got != c.want {
			t.Errorf("%s: the cell has %q, %v", name, got, ok)
		}
		if _, ok := names.Cell(c.all[0], "type"); ok {
			t.Errorf("%s: another column has the name", name)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"ip-10-0-1-2.eu-west-1.compute.internal": "ip-10-0-1-2", "a": "a", "10.0.0.1": "10.0.0.1", ".x": ".x", "": "",
	} {
		if got := Host(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
