package theme

import (
	"strings"
	"testing"
)

func TestThemesSayTheSameWithoutColour(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		mono := New(name, Terminal{})
		for r := Text; r < roles; r++ {
			on := mono.On(r)
			for _, seq := range []string{"3", "9"} {
				for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(on, "\x1b["), "m"), ";") {
					if len(part) > 1 && strings.HasPrefix(part, seq) {
						t.Errorf("%s: role %d has a colour without colours: %q", name, r, on)
					}
				}
			}
		}
		if mono.Paint(Selected, "x") == "x" || mono.Paint(Bad, "x") == mono.Paint(Good, "x") || mono.Paint(HeaderSorted, "x") == mono.Paint(Header, "x") {
			t.Errorf("%s: without colours the roles cannot be told apart", name)
		}
	}
}

func TestEveryStyleIsEnded(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		for _, term := range []Terminal{{}, {Colour: true}, {Colour: true, True: true}, {Colour: true, True: true, Light: true}} {
			th := New(name, term)
			for r := Text; r < roles; r++ {
				if (th.On(r) == "") != (th.Off(r) == "") {
					t.Errorf("%s %+v: role %d begins with %q and ends with %q", name, term, r, th.On(r), th.Off(r))
				}
			}
			if !term.True && strings.Contains(strings.Join(th.on[:], ""), "8;2;") {
				t.Errorf("%s: 24-bit colours on a terminal that has none", name)
			}
		}
	}
	if New(Auto, Terminal{Colour: true, Light: true}).Name != Light || New("", Terminal{Colour: true}).Name != Dark {
		t.Error("auto does not follow the background")
	}
	if Check("pink") == nil || Check(Mono) != nil || Check("") != nil {
		t.Error("names are not checked")
	}
}

func TestPaint(t *testing.T) {
	t.Parallel()
	if got := Plain().Paint(Bad, "x"); got != "x" {
		t.Errorf("%q", got)
	}
	if got := New(Dark, Terminal{Colour: true}).Paint(Bad, ""); got != "" {
		t.Errorf("%q", got)
	}
}
