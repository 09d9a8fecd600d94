package show

import (
	"slices"
	"testing"
)

func TestDomain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names []string
		want  string
	}{
		{nil, ""},
		{[]string{"a.ec2.internal"}, ".ec2.internal"},
		{[]string{"a.ec2.internal", "b.ec2.internal"}, ".ec2.internal"},
		{[]string{"a.x", "b.y"}, ""},
		{[]string{"a.x", "b"}, ""},
		{[]string{"a"}, ""},
		{[]string{".x"}, ""},
		{[]string{"a."}, ""},
		{[]string{"10.0.0.1", "11.0.0.1"}, ""},
		{[]string{"10.0.0.1:61679", "11.0.0.1:61679"}, ""},
		{[]string{"::ffff:10.0.0.1"}, ""},
	} {
		if got := Domain(slices.Values(c.names)); got != c.want {
			t.Errorf("%v: %q, want %q", c.names, got, c.want)
		}
	}
}
