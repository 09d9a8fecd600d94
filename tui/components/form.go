package components

import (
	"strings"

	"cnictl/tui/keymap"
	"cnictl/tui/theme"
)

// Field is one line of a form.
type Field struct {
	Name   string // stable
	Label  string
	Hint   string
	Value  string
	Choice []string              // values to go through with left and right; nil: free text
	Check  func(v string) string // "" = good, else why not
}

// Form is a short list of fields to fill in. While it is open it takes typed text.
type Form struct {
	Fields []Field
	cursor int
}

// Value is a field's value.
func (f *Form) Value(name string) string {
	for _, x := range f.Fields {
		if x.Name == name {
			return x.Value
		}
	}
	return ""
}

// Set gives a field a value.
func (f *Form) Set(name, value string) {
	for i := range f.Fields {
		if f.Fields[i].Name == name {
			f.Fields[i].Value = value
		}
	}
}

// Good tells that every field passes its check.
func (f *Form) Good() bool {
	for _, x := range f.Fields {
		if x.Check != nil && x.Check(x.Value) != "" {
			return false
		}
	}
	return true
}

// maxValue bounds a value in bytes.
const maxValue = 256

// Do moves between fields.
func (f *Form) Do(action string) bool {
	switch action {
	case keymap.Up, keymap.PrevPane:
		f.cursor = (f.cursor + len(f.Fields) - 1) % max(len(f.Fields), 1)
	case keymap.Down, keymap.NextPane:
		f.cursor = (f.cursor + 1) % max(len(f.Fields), 1)
	default:
		return false
	}
	return true
}

// Key takes a key as its message prints; text is what it types, "" = nothing. It tells
// whether a value has changed.
func (f *Form) Key(key, text string) bool {
	if f.cursor >= len(f.Fields) {
		return false
	}
	x := &f.Fields[f.cursor]
	before := x.Value
	switch key {
	case "up", "shift+tab":
		f.Do(keymap.Up)
	case "down", "tab":
		f.Do(keymap.Down)
	case "left":
		x.Value = x.choose(-1)
	case "right":
		x.Value = x.choose(+1)
	case "backspace":
		if r := []rune(x.Value); len(r) > 0 && x.Choice == nil {
			x.Value = string(r[:len(r)-1])
		}
	case "ctrl+u":
		if x.Choice == nil {
			x.Value = ""
		}
	default:
		if x.Choice == nil && len(x.Value)+len(text) <= maxValue && printable(text) {
			x.Value += text
		}
	}
	return x.Value != before
}

func (x *Field) choose(step int) string {
	for i, c := range x.Choice {
		if c == x.Value {
			return x.Choice[(i+step+len(x.Choice))%len(x.Choice)]
		}
	}
	if len(x.Choice) > 0 {
		return x.Choice[0]
	}
	return x.Value
}

func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Lines draws the fields, and what is wrong with the one under the cursor.
func (f *Form) Lines(s Style, width, height int) []string {
	if width <= 0 || height <= 0 {
		return nil
	}
	label := 0
	for _, x := range f.Fields {
		label = max(label, Width(x.Label))
	}
	label = min(label, max(width/2, 0))
	var lines []string
	top := max(min(f.cursor-height/2, len(f.Fields)-height), 0)
	for i := top; i < len(f.Fields) && len(lines) < height; i++ {
		x := f.Fields[i]
		l := NewLine(s, width)
		role := theme.Text
		if i == f.cursor {
			l.Add(theme.Accent, s.Pick("▸ ", "> "))
			role = theme.Selected
		} else {
			l.Gap(2)
		}
		l.Add(theme.Key, s.Fit(x.Label, label, false)).Gap(2)
		switch {
		case x.Choice != nil:
			l.Add(role, s.Pick("◂ ", "< ")+x.Value+s.Pick(" ▸", " >"))
		case i == f.cursor:
			l.Add(role, x.Value+"_")
		default:
			l.Add(role, x.Value)
		}
		note, noteRole := x.Hint, theme.Faint
		if x.Check != nil {
			if why := x.Check(x.Value); why != "" {
				note, noteRole = why, theme.Bad
			}
		}
		l.Gap(2).Add(noteRole, note)
		lines = append(lines, l.String())
	}
	return Exactly(lines, width, height)
}
