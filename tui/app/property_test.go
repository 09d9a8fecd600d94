package app

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/pages"
	"cnictl/tui/source/sourcetest"
	"cnictl/tui/theme"
)

// hostile is what a node that lies may call things.
var hostile = []string{
	"\x1b[2J\x1b[H", "\x1b]0;title\x07", "a\r\nb\tc", "\u202egnp.exe", "東京都渋谷区", "e\u0301e\u0301e\u0301", "👩\u200d👩\u200d👧\u200d👦", "❤\ufe0f❤\ufe0f",
	"\xff\xfe", "", strings.Repeat("long-", 300), "\x00\x07", "a\u200bb\u2028c", "%s%d", "\u0085\u009b31m", "🇩🇪🇫🇷",
}

// spoilt is a node in which every string is a hostile one.
func spoilt(r *rand.Rand, name string) introspect.NodeIPAM {
	any := func() string { return hostile[r.IntN(len(hostile))] }
	n := introspect.NodeIPAM{
		Metadata: introspect.ObjectMeta{Name: name + any()}, State: introspect.State(any()), Source: any(), Via: any(),
		Error:  &introspect.NodeError{Reason: introspect.Reason(any()), Message: any()},
		Object: &introspect.NodeObject{Zone: any(), InstanceType: any(), InstanceID: any(), OS: any(), Labels: map[string]string{any(): any()}},
	}
	count := func() int { return r.IntN(1<<31) - 1<<30 }
	big := count()
	n.Summary = &introspect.Summary{
		Version: any(), InstanceType: any(), InstanceID: any(),
		Cards:      []introspect.CardSummary{{Mode: any(), Assigned: count(), Cooling: count(), Free: count(), Total: count(), ENILimit: &big, AddressLimit: &big}},
		ENIs:       []introspect.ENISummary{{ID: any(), Flags: []string{any()}}},
		Subnets:    []introspect.Subnet{{ID: any(), CIDR: []string{"10.0.0.0/19", any()}[r.IntN(2)], Available: &big}},
		MaxPods:    &introspect.MaxPods{Verdict: any(), Value: &big},
		LastErrors: []introspect.LastError{{At: sourcetest.Start(), Operation: any(), Cause: any(), Message: any()}},
		Trunk:      &introspect.Trunk{ENIID: any(), BranchLimit: &big, BranchUsed: &big},
	}
	if r.IntN(3) == 0 {
		n.State = introspect.StateLive
	}
	return n
}

// checkFrame holds a picture to its size and to what may be in it.
func checkFrame(t *testing.T, m *Model, did string) {
	t.Helper()
	content := m.View().Content
	if m.width == 0 || m.height == 0 {
		if content != "" {
			t.Fatalf("%s: a picture without room", did)
		}
		return
	}
	lines := strings.Split(content, "\n")
	if len(lines) != m.height {
		t.Fatalf("%s: %d lines at %dx%d", did, len(lines), m.width, m.height)
	}
	for i, line := range lines {
		if w := max(ansi.StringWidth(line), ansi.StringWidthWc(line)); w > m.width {
			t.Fatalf("%s: line %d is %d wide at %dx%d: %q", did, i, w, m.width, m.height, line)
		}
		if !utf8.ValidString(line) {
			t.Fatalf("%s: line %d is no UTF-8: %q", did, i, line)
		}
		for _, r := range colourless(line) {
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r == 0x200b {
				t.Fatalf("%s: line %d has %U: %q", did, i, r, line)
			}
			if m.ascii && r >= utf8.RuneSelf {
				t.Fatalf("%s: line %d has %q, which is no ASCII: %q", did, i, r, line)
			}
		}
	}
}

// colourless takes the colours off, and nothing else: any other sequence stays to be
// found.
func colourless(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		if strings.HasPrefix(line[i:], "\x1b[") {
			if end := strings.IndexFunc(line[i+2:], func(r rune) bool { return (r < '0' || r > '9') && r != ';' && r != ':' }); end >= 0 && line[i+2+end] == 'm' {
				i += 2 + end
				continue
			}
		}
		b.WriteByte(line[i])
	}
	return b.String()
}

// anyKeys are pressed in the property test, letters for prompts among them.
var anyKeys = []string{
	"up", "down", "pgup", "pgdown", "home", "end", "g", "G", "enter", "esc", "l", "h", "[", "]", "-", "1", "2", "3", "4", "5", "tab", ":", "/", "n", "N", "s", "o",
	"shift+left", "shift+right", "space", "ctrl+space", "f", "w", "p", "+", "_", "y", "i", "x", "t", "m", "?", "ctrl+g", "ctrl+l", "ctrl+u", "ctrl+d", "D", "L", "c", "j", "a", "e", "z", "backspace", "left",
}

func TestFramesHoldAtAnySizeAndData(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			fleet := sourcetest.New([]int{0, 1, 7, 300}[seed%4], 3)
			fleet.Name = hostile[r.IntN(len(hostile))]
			b := newBench(t, fleet, func(o *Options) {
				o.ASCII = seed%3 == 1
				o.Theme = theme.Names()[r.IntN(len(theme.Names()))]
			})
			checkFrame(t, b.Model, "at first")
			for step := range 250 {
				did := ""
				switch r.IntN(6) {
				case 0:
					b.resize(r.IntN(230), r.IntN(70))
					did = "resized"
				case 1:
					for range r.IntN(4) {
						fleet.Put(spoilt(r, fmt.Sprint(r.IntN(40))))
					}
					fleet.Step(r.IntN(20))
					b.change()
					did = "changed"
				case 2:
					b.clock = b.clock.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
					b.send(second{b.ticks})
					did = "a second"
				case 3:
					b.mouse = true
					x, y := r.IntN(max(b.width, 1)), r.IntN(max(b.height, 1))
					b.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
					b.send(tea.MouseWheelMsg{X: x, Y: y, Button: []tea.MouseButton{tea.MouseWheelUp, tea.MouseWheelDown}[r.IntN(2)]})
					did = "mouse"
				case 4:
					b.send(pages.Toast{Text: strings.ToValidUTF8(strings.Map(func(r rune) rune { return max(r, ' ') }, "done "+fmt.Sprint(step)), ""), Role: theme.Good})
					did = "toast"
				default:
					k := anyKeys[r.IntN(len(anyKeys))]
					if k == "ctrl+c" || k == "q" {
						continue
					}
					b.press(k)
					did = "key " + k
				}
				checkFrame(t, b.Model, did)
				if again := b.View().Content; again != strings.Join(b.lines(), "\n") && b.width > 0 && b.height > 0 {
					t.Fatalf("%s: drawing twice gives two pictures", did)
				}
			}
		})
	}
}
