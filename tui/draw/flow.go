package draw

import (
	"cnictl/tui/show"
)

// Flow writes spans from the current position of a line. Text that does not fit continues
// on the next line, after an indent in the role margin. Lines break at blanks; a word
// wider than a line is split. What could control the terminal is escaped.
func Flow(first *Line, indent int, margin Role, spans []Span) []*Line {
	lines := []*Line{first}
	l, fresh := first, true // nothing is on the line yet
	for _, span := range spans {
		for text := show.Safe(span.Text); text != ""; {
			word, rest := cutWord(text)
			blank := word[0] == ' '
			width := Width(word)
			switch {
			case fresh && blank: // continuation lines do not begin with blanks
				if len(lines) == 1 {
					l.Gap(width)
				}
			case width <= l.Room():
				l.Add(span.Role, word)
				fresh = false
			case blank: // at the end
			case !fresh:
				l = NewLine(first.style, first.width)
				l.Add(margin, Blank(indent))
				lines, fresh = append(lines, l), true
				continue
			default:
				head := Head(word, l.Room())
				l.Add(span.Role, head)
				fresh, rest = false, word[len(head):]+rest
				if head == "" {
					rest = "" // not even one character fits
				}
			}
			text = rest
		}
	}
	return lines
}

// cutWord splits off the leading run of blanks or of non-blanks.
func cutWord(text string) (word, rest string) {
	blank := text[0] == ' '
	for i := range len(text) {
		if (text[i] == ' ') != blank {
			return text[:i], text[i:]
		}
	}
	return text, ""
}
