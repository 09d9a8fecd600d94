package tour

import (
	"os"
	"strings"
	"testing"

	"cnictl/testenv/text/golden"
)

// Pages are documentation in which tests rewrite the text between markers:
//
//	<!-- made:NAME -->
//	…
//	<!-- /made -->
type Pages struct {
	t     testing.TB
	texts map[string]string // by name below the module's root
	set   map[string]bool   // page and section
}

// NewPages reads pages. When the test ends, stale pages fail it or, with -update, are
// rewritten.
func NewPages(t testing.TB, names ...string) *Pages {
	t.Helper()
	p := &Pages{t, map[string]string{}, map[string]bool{}}
	before := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(Path(t, name))
		if err != nil {
			t.Fatal(err)
		}
		p.texts[name], before[name] = string(text), string(text)
	}
	t.Cleanup(func() {
		for name, text := range p.texts {
			switch {
			case text == before[name]:
			case golden.Update():
				if err := os.WriteFile(Path(t, name), []byte(text), 0o644); err != nil {
					t.Error(err)
				}
			default:
				t.Errorf("%s is stale: run this package's tests with -update to rewrite it", name)
			}
		}
	})
	return p
}

// Set puts text between the markers of a section.
func (p *Pages) Set(page, name, text string) {
	p.t.Helper()
	fresh, ok := replaced(p.texts[page], name, text)
	if !ok {
		p.t.Errorf("%s has no section %q", page, name)
		return
	}
	p.texts[page], p.set[page+":"+name] = fresh, true
}

// Code puts text in a code block. Blocks without a language show commands.
func (p *Pages) Code(page, name, text string) {
	p.t.Helper()
	language := "text"
	if strings.HasPrefix(text, "$ ") {
		language = ""
	}
	p.Set(page, name, "```"+language+"\n"+strings.TrimRight(text, "\n")+"\n```\n")
}

// Replace replaces a whole file.
func (p *Pages) Replace(name, text string) { p.texts[name] = text }

// Unset returns the sections of a page that have not been set.
func (p *Pages) Unset(page string) []string {
	var out []string
	for line := range strings.Lines(p.texts[page]) {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(line, " -->\n"), "<!-- made:"); ok && !p.set[page+":"+name] {
			out = append(out, name)
		}
	}
	return out
}

func replaced(page, name, text string) (string, bool) {
	begin, end := "<!-- made:"+name+" -->\n", "<!-- /made -->\n"
	before, rest, ok := strings.Cut(page, begin)
	if !ok || strings.Contains(rest, begin) {
		return page, false
	}
	inside, after, ok := strings.Cut(rest, end)
	if !ok || strings.Contains(inside, "<!-- made:") {
		return page, false
	}
	return before + begin + text + end + after, true
}
