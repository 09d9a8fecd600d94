package components

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"cnictl/tui/draw"
	"cnictl/tui/keymap"
)

// recorder is a body that records its calls.
type recorder struct{ log []string }

func (b *recorder) Do(action string, _ time.Time) bool {
	b.log = append(b.log, action)
	return true
}
func (b *recorder) Wheel(rows int, _ time.Time) { b.log = append(b.log, fmt.Sprint("wheel ", rows)) }
func (b *recorder) Click(x, y int, _ time.Time) bool {
	b.log = append(b.log, fmt.Sprint("click ", x, ",", y))
	return y == 1
}

func TestFrame_WorksItsBodies(t *testing.T) {
	t.Parallel()
	var f Frame
	pane := func(title string) Pane {
		return Pane{Title: title, Lines: func(_ draw.Style, w, h int) []string { return draw.Exactly(nil, w, h) }}
	}
	f.Draw(draw.Style{Theme: draw.PlainTheme()}, 80, 21, []string{""}, []Pane{pane("a"), pane("b")})
	var top, foot recorder
	f.Bodies = []Body{&top, &foot}
	do := func(m Mouse) bool { return f.Mouse(m, time.Time{}) }
	under := f.rects[1].Y + f.top // first row of the pane below
	steps := []struct {
		mouse Mouse
		focus int
		open  bool
	}{
		{Mouse{X: 3, Y: under, Wheel: 3}, 0, false}, // the wheel does not move the focus
		{Mouse{X: 3, Y: under, Click: true}, 1, false},
		{Mouse{X: 4, Y: under + 1, Click: true}, 1, false}, // there is a row, but a single click does not open it
		{Mouse{X: 4, Y: under + 1, Double: true}, 1, true},
		{Mouse{X: 4, Y: under + 2, Double: true}, 1, false}, // no row there
		{Mouse{X: 4, Y: 0, Click: true}, 1, false},          // above all panes
		{Mouse{X: 4, Y: 99, Wheel: 1}, 1, false},
	}
	for i, s := range steps {
		if open := do(s.mouse); open != s.open || f.Focus != s.focus {
			t.Errorf("step %d: open %v, focus %d; want %v, %d", i, open, f.Focus, s.open, s.focus)
		}
	}
	f.Work(keymap.Down, time.Time{})
	f.Work(keymap.NextPane, time.Time{})
	f.Work(keymap.Up, time.Time{})
	if want := []string{"wheel 3", "click 3,0", "click 4,1", "click 4,1", "click 4,2", keymap.Down}; !slices.Equal(foot.log, want) {
		t.Errorf("below: %v, want %v", foot.log, want)
	}
	if !slices.Equal(top.log, []string{keymap.Up}) {
		t.Errorf("above: %v", top.log)
	}
}
