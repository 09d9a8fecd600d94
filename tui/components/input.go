package components

import (
	"strings"
	"unicode"

	"cnictl/tui/draw"
)

// Input is one line of typed text.
type Input struct {
	text []rune
	at   int // cursor
}

// maxInput limits a line, in characters.
const maxInput = 512

// Text returns the typed text.
func (i *Input) Text() string { return string(i.text) }

// Set replaces the text, filtered as in Type, and puts the cursor after it.
func (i *Input) Set(text string) {
	i.text, i.at = nil, 0
	i.Type(text)
}

// Key handles a key, named as its message prints it; text is what it types. It reports
// whether the key was used.
func (i *Input) Key(key, text string) bool {
	switch key {
	case "left", "ctrl+b":
		i.at = max(i.at-1, 0)
	case "right", "ctrl+f":
		i.at = min(i.at+1, len(i.text))
	case "home", "ctrl+a":
		i.at = 0
	case "end", "ctrl+e":
		i.at = len(i.text)
	case "backspace":
		i.cut(max(i.at-1, 0), i.at)
	case "delete":
		i.cut(i.at, min(i.at+1, len(i.text)))
	case "ctrl+u":
		i.cut(0, i.at)
	case "ctrl+k":
		i.cut(i.at, len(i.text))
	case "ctrl+w", "alt+backspace":
		from := len([]rune(strings.TrimRight(string(i.text[:i.at]), " ")))
		for from > 0 && i.text[from-1] != ' ' {
			from--
		}
		i.cut(from, i.at)
	default:
		return text != "" && i.Type(text)
	}
	return true
}

// Type inserts text at the cursor, without unprintable characters.
func (i *Input) Type(text string) bool {
	typed := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
	typed = typed[:min(len(typed), max(maxInput-len(i.text), 0))]
	rest := append(typed, i.text[i.at:]...)
	i.text = append(i.text[:i.at:i.at], rest...)
	i.at += len(typed)
	return true
}

func (i *Input) cut(from, to int) {
	i.text = append(i.text[:from:from], i.text[to:]...)
	i.at = from
}

// Draw writes the text with its cursor into a line. If the text is longer than the room,
// Draw writes the part around the cursor.
func (i *Input) Draw(l *draw.Line, room int) {
	room = min(room, l.Room())
	if room <= 0 {
		return
	}
	from := 0
	for from < i.at && draw.Width(string(i.text[from:i.at])) > room-1 {
		from++
	}
	l.Add(draw.Text, string(i.text[from:i.at]))
	under, rest := " ", ""
	if i.at < len(i.text) {
		under, rest = string(i.text[i.at]), string(i.text[i.at+1:])
	}
	l.Add(draw.Selected, under).Add(draw.Text, rest)
}
