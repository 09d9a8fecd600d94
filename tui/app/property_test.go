package app

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/watch"
	"cnictl/tui/draw"
	"cnictl/tui/keymap"
	"cnictl/tui/pages"
	"cnictl/tui/pages/pagetest"
)

// hostile are names that a malicious node may use.
var hostile = []string{
	"\x1b[2J\x1b[H", "\x1b]0;title\x07", "a\r\nb\tc", "\u202egnp.exe", "東京都渋谷区", "e\u0301e\u0301e\u0301", "👩\u200d👩\u200d👧\u200d👦", "❤\ufe0f❤\ufe0f",
	"\xff\xfe", "", strings.Repeat("long-", 300), "\x00\x07", "a\u200bb\u2028c", "%s%d", "\u0085\u009b31m", "\u2066a\u2069\u061c\u200f", "\x9b2J", "\x1bP1$r\x1b\\", "\u3164\u00ad\ufeff", "🇩🇪🇫🇷",
}

// spoil fills a value: every string is hostile, numbers are arbitrary, even negative, and
// pointers, lists and maps may be absent.
func spoil(r *rand.Rand, v reflect.Value, depth int) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = pagetest.Start().Add(time.Duration(r.IntN(1<<20)-1<<19) * time.Second)
		return
	case *netip.Addr:
		*at = netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(4)), byte(r.IntN(256))})
		if r.IntN(8) == 0 { // decoding refuses it; the screens must not rely on that
			*at = netip.MustParseAddr("fe80::1").WithZone(hostile[r.IntN(len(hostile))])
		}
		return
	case *netip.Prefix:
		*at = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(r.IntN(4)), byte(r.IntN(256))}), r.IntN(33)).Masked()
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile[r.IntN(len(hostile))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt([]int64{int64(r.IntN(60)), int64(r.Int32()) - 1<<30}[r.IntN(2)])
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		v.SetUint(uint64(r.IntN(200)))
	case reflect.Float64:
		v.SetFloat([]float64{r.Float64() * 100, -1, math.NaN(), math.Inf(1), 1e300}[r.IntN(5)])
	case reflect.Pointer:
		if depth > 0 && r.IntN(5) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			spoil(r, v.Elem(), depth-1)
		}
	case reflect.Slice:
		if n := r.IntN(4); depth > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				spoil(r, v.Index(i), depth-1)
			}
		}
	case reflect.Map:
		if depth > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range r.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				spoil(r, key, depth-1)
				spoil(r, value, depth-1)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			spoil(r, v.Index(i), depth)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(r, v.Field(i), depth)
			}
		}
	}
}

// hostileNode is a node in which every string is hostile.
func hostileNode(r *rand.Rand, name string) document.NodeIPAM {
	var n document.NodeIPAM
	spoil(r, reflect.ValueOf(&n).Elem(), 6)
	n.Metadata.Name = name + n.Metadata.Name
	if r.IntN(3) == 0 {
		n.State = document.StateLive
	}
	return n
}

// lies are documents in which every string is hostile or absent.
func lies(r *rand.Rand, node string) watch.Detail {
	var d watch.Detail
	spoil(r, reflect.ValueOf(&d).Elem(), 8)
	d.Node = node
	return d
}

// checkFrame checks the size of a picture and the characters in it.
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
			if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x200b || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%s: line %d has %U: %q", did, i, r, line)
			}
			if m.ascii && r >= utf8.RuneSelf {
				t.Fatalf("%s: line %d has %q, which is no ASCII: %q", did, i, r, line)
			}
		}
	}
}

// colourless removes colour sequences and nothing else. Any other sequence remains and is
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

// everyKey returns the keys of all tables except those that leave, plus letters for prompts.
func everyKey() []string {
	keys := []string{"e", "i", "z", "c", "?", "ctrl+g", "enter", "enter", "esc", "tab", "z"}
	add := func(bindings []keymap.Binding) {
		for _, b := range bindings {
			if b.Action != keymap.Quit && b.Action != keymap.Back && b.Action != keymap.Suspend {
				keys = append(keys, b.Keys...)
			}
		}
	}
	for _, s := range keymap.Table() {
		add(s.Bindings)
	}
	for _, p := range keymap.PageTable() {
		add(p.Bindings)
	}
	return keys
}

// lied answers the pages' requests with lies.
func (b *bench) lied(r *rand.Rand) {
	reads := b.reads
	b.reads = nil
	for _, q := range reads[max(len(reads)-3, 0):] { // earlier requests are never answered
		b.send(pages.Loaded{ID: q.ID, Want: q.Want, Detail: lies(r, q.Node)})
	}
}

func TestFramesHoldAtAnySizeAndData(t *testing.T) {
	t.Parallel()
	keys := everyKey()
	for seed := range uint64(16) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			nodes, steps := []int{0, 1, 7, 300}[seed%4], 250
			if seed == 15 {
				nodes, steps = 5000, 80
			}
			fleet := pagetest.NewSource(nodes, 3)
			fleet.Name = hostile[r.IntN(len(hostile))]
			b := newBench(t, fleet, func(o *Options) {
				o.ASCII = seed%3 == 1
				o.Theme = draw.Themes()[r.IntN(len(draw.Themes()))]
				o.Examine = func(context.Context, pages.Examine) (report document.DoctorReport, _ error) {
					spoil(r, reflect.ValueOf(&report).Elem(), 6)
					return report, nil
				}
			})
			checkFrame(t, b.Model, "at first")
			for range steps {
				did := b.anything(t, r, fleet, keys)
				b.lied(r)
				checkFrame(t, b.Model, did)
				if again := b.View().Content; again != strings.Join(b.lines(), "\n") && b.width > 0 && b.height > 0 {
					t.Fatalf("%s: drawing twice gives two pictures", did)
				}
			}
		})
	}
}

// anything does one random thing and returns its description.
func (b *bench) anything(t *testing.T, r *rand.Rand, fleet *pagetest.Source, keys []string) string {
	t.Helper()
	switch r.IntN(9) {
	case 0:
		b.resize(r.IntN(230), r.IntN(70))
		return "resized"
	case 1:
		for range r.IntN(4) {
			fleet.Put(hostileNode(r, fmt.Sprint(r.IntN(40))))
		}
		fleet.Step(r.IntN(20))
		b.change()
		return "changed"
	case 2:
		b.clock = b.clock.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
		b.send(second{b.ticks})
		return "a second"
	case 3:
		b.mouse = true
		x, y := r.IntN(max(b.width, 1)), r.IntN(max(b.height, 1))
		b.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
		b.send(tea.MouseWheelMsg{X: x, Y: y, Button: []tea.MouseButton{tea.MouseWheelUp, tea.MouseWheelDown}[r.IntN(2)]})
		return "mouse"
	case 4:
		s := b.fleet.Stats()
		s.Problem = hostile[r.IntN(len(hostile))]
		b.send(measured{s})
		return "measured"
	default:
		k := keys[r.IntN(len(keys))]
		b.press(k)
		return "key " + k
	}
}
