package output

import (
	"slices"
	"testing"

	"cnictl/cmd/cnictl/internal/table"
)

// TestPage_Field: a value wider than the terminal continues on the next line. It breaks between
// items rather than within one, and never within a word.
func TestPage_Field(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		width int
		value string
		want  []string
	}{
		{0, "v1.0.0, up 15d  image registry.example/amazon-k8s-cni:v1.0.0", []string{"daemon      v1.0.0, up 15d  image registry.example/amazon-k8s-cni:v1.0.0"}},
		{60, "v1.0.0, up 15d  image registry.example/amazon-k8s-cni:v1.0.0", []string{"daemon      v1.0.0, up 15d", "            image registry.example/amazon-k8s-cni:v1.0.0"}},
		{32, "one two three four five six", []string{"daemon      one two three four", "            five six"}},
		{24, "a-word-that-is-longer-than-the-room b", []string{"daemon      a-word-that-is-longer-than-the-room", "            b"}},
	} {
		p := Page{Opts: table.Options{Width: x.width}}
		p.Field("daemon", x.value)
		if !slices.Equal(p.Lines, x.want) {
			t.Errorf("%d: %q, want %q", x.width, p.Lines, x.want)
		}
	}
	p := Page{Opts: table.Options{Width: 20}}
	if p.Text("NODE ip-10-0-3-17  m5.large"); !slices.Equal(p.Lines, []string{"NODE ip-10-0-3-17", "m5.large"}) {
		t.Errorf("%q", p.Lines)
	}
}
