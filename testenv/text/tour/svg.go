package tour

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// A cell of the picture in pixels, and its margin.
const (
	cellWidth, cellHeight = 8, 18
	margin                = 12
)

// Default colours of the terminal in the picture.
const (
	paper = "#0d1117"
	ink   = "#d1d7e0"
)

// pen is how the following text is drawn.
type pen struct {
	fg, bg          string
	bold, underline bool
	reverse         bool
}

var sgr = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// SVG converts a screen with 24-bit colours to a picture for browsers.
func SVG(frame string) string {
	lines := strings.Split(strings.TrimRight(frame, "\n"), "\n")
	columns := 0
	for _, l := range lines {
		columns = max(columns, ansi.StringWidth(l))
	}
	var out strings.Builder
	width, height := columns*cellWidth+2*margin, len(lines)*cellHeight+2*margin
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13" fill="%s" xml:space="preserve">`+"\n",
		width, height, width, height, ink)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" rx="8" fill="%s"/>`+"\n", width, height, paper)
	p := pen{}
	for y, l := range lines {
		x, at := 0, 0
		for _, s := range append(sgr.FindAllStringIndex(l, -1), []int{len(l), len(l)}) {
			x = p.draw(&out, x, y, l[at:s[0]])
			p = p.with(l[s[0]:s[1]])
			at = s[1]
		}
	}
	out.WriteString("</svg>\n")
	return out.String()
}

// with returns the pen after an escape sequence.
func (p pen) with(seq string) pen {
	codes := strings.Split(strings.Trim(seq, "\x1b[m"), ";")
	for i := 0; i < len(codes); i++ {
		switch code := codes[i]; code {
		case "", "0":
			p = pen{}
		case "1":
			p.bold = true
		case "4":
			p.underline = true
		case "7":
			p.reverse = true
		case "38", "48":
			colour := rgb(codes[i+1:])
			i += 4
			if code == "38" {
				p.fg = colour
			} else {
				p.bg = colour
			}
		default:
			panic("no code of a frame: " + strconv.Quote(seq))
		}
	}
	return p
}

// rgb converts "2;r;g;b".
func rgb(codes []string) string {
	if len(codes) < 4 || codes[0] != "2" {
		panic(fmt.Sprintf("not a 24-bit colour: %v", codes))
	}
	out := "#"
	for _, c := range codes[1:4] {
		n, err := strconv.ParseUint(c, 10, 8)
		if err != nil {
			panic(err)
		}
		out += fmt.Sprintf("%02x", n)
	}
	return out
}

// drawn reports whether a character is drawn as a shape, not as text.
func drawn(r rune) bool { return r == ' ' || r >= '▁' && r <= '█' || r >= '░' && r <= '▓' }

// draw puts a text at a cell and returns the cell after it. Block characters are drawn as
// shapes: fonts leave gaps between them.
func (p pen) draw(out *strings.Builder, x, y int, text string) int {
	fg, bg := p.fg, p.bg
	if fg == "" {
		fg = ink
	}
	if p.reverse {
		if bg == "" {
			bg = paper
		}
		fg, bg = bg, fg
	}
	rect := func(at, cells, from, high int, fill string, opacity float64) {
		fmt.Fprintf(out, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"`, margin+at*cellWidth, margin+y*cellHeight+from, cells*cellWidth, high, fill)
		if opacity < 1 {
			fmt.Fprintf(out, ` fill-opacity="%.2f"`, opacity)
		}
		out.WriteString("/>\n")
	}
	cells := ansi.StringWidth(text)
	if bg != "" && cells > 0 {
		rect(x, cells, 0, cellHeight, bg, 1)
	}
	for text != "" {
		r, size := utf8.DecodeRuneInString(text)
		n := len(text) - len(strings.TrimLeft(text, string(r))) // a run of the same character
		switch {
		case r == ' ':
		case r >= '▁' && r <= '█':
			high := (int(r-'▀')*cellHeight + 4) / 8
			rect(x, n/size, cellHeight-high, high, fg, 1)
		case r >= '░' && r <= '▓':
			rect(x, n/size, 0, cellHeight, fg, 0.25*float64(r-'░'+1))
		default:
			n = len(text)
			if i := strings.IndexFunc(text, drawn); i >= 0 {
				n = i
			}
			word := text[:n]
			attrs := ""
			if fg != ink {
				attrs += ` fill="` + fg + `"`
			}
			if p.bold {
				attrs += ` font-weight="bold"`
			}
			if p.underline {
				attrs += ` text-decoration="underline"`
			}
			fmt.Fprintf(out, `<text x="%d" y="%d" textLength="%d"%s>%s</text>`+"\n", margin+x*cellWidth, margin+y*cellHeight+13,
				ansi.StringWidth(word)*cellWidth, attrs, strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(word))
		}
		x += ansi.StringWidth(text[:n])
		text = text[n:]
	}
	return x
}
