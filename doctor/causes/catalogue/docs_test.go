package catalogue

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cnictl/testenv/text/golden"
)

// TestDocumentation: the pages in docs/doctor say what was read from them, and nothing else; there is one for
// each group. docs/errors.md follows from them.
func TestDocumentation(t *testing.T) {
	t.Parallel()
	const dir = "../../../docs/doctor"
	for _, g := range Groups() {
		golden.File(t, filepath.Join(dir, g.Name+".md"), []byte(g.markdown()))
	}
	golden.File(t, "../../../docs/errors.md", []byte(errorsPage()))
	pages, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil || len(pages) != len(Groups()) {
		t.Errorf("%d pages for %d groups, %v", len(pages), len(Groups()), err)
	}
}

// markdown returns the page of a group.
func (g Group) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nCauses of the group `%s`. The doctor reads them from this page: `doctor/causes/catalogue` says how it is written.\n", g.Title, g.Name)
	b.WriteString("`cnictl doctor explain CODE` prints the same offline. In commands, replace words in CAPITALS.\n\n")
	b.WriteString("| code | severity | |\n|---|---|---|\n")
	for _, e := range g.Entries {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", e.Code, anchor(e.Code), e.Severity, e.Title)
	}
	for i := range g.Entries {
		g.Entries[i].markdown(&b)
	}
	return b.String()
}

func (e *Entry) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n**%s** (%s). %s\n", e.Code, sentence(e.Title), e.Severity, e.Shows)
	fmt.Fprintf(b, "\nCheck: %s\n\n```\n%s\n```\n\n", e.Check.Text, e.Check.Command)
	for i, fix := range e.Fixes {
		fmt.Fprintf(b, "%d. %s", i+1, fix.Text)
		if fix.Command != "" {
			fmt.Fprintf(b, "\n   ```\n   %s\n   ```\n", fix.Command)
		} else {
			b.WriteString("\n")
		}
		if fix.SideEffect != "" || fix.Risk > NoRisk {
			fmt.Fprintf(b, "   %s\n", strings.TrimSpace("Risk: "+fix.Risk.String()+". "+fix.SideEffect))
		}
	}
	b.WriteString("\n")
	fact := func(name, text string) {
		if text != "" {
			fmt.Fprintf(b, "- %s: %s\n", name, text)
		}
	}
	fact("Needs", code(e.Required))
	fact("Also uses", code(e.Supporting))
	var ceilings []string
	for _, mode := range Modes() {
		ceilings = append(ceilings, mode+" "+e.Ceiling.Of(mode).String())
	}
	if first := e.Ceiling[0]; !slices.ContainsFunc(e.Ceiling[:], func(c Confidence) bool { return c != first }) {
		ceilings = []string{first.String()}
	}
	fact("Highest confidence", strings.Join(ceilings, ", "))
	if e.Always {
		fact("Reported", "even if another cause explains it")
	}
	fact("Upstream", e.Upstream)
	fact("Not on our daemon", e.Ours)
	fact("Explains", code(e.Explains))
	fact("Explained by", code(e.ExplainedBy()))
	var codes []string
	for _, c := range e.Daemon {
		codes = append(codes, string(c))
	}
	fact("Codes of our daemon", code(codes))
	for _, s := range e.Signatures {
		text := "`` " + s.Text + " `` in " + code(s.Where)
		if s.Fix != "" {
			text += ", fix " + code([]string{s.Fix})
		}
		if s.Note != "" {
			text += " (" + s.Note + ")"
		}
		fact("Text", text)
	}
	fact("Links", strings.Join(bracketed(e.Links), ", "))
}

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func bracketed(links []string) []string {
	out := make([]string, len(links))
	for i, l := range links {
		out[i] = "<" + l + ">"
	}
	return out
}

// TestOperations: docs/operations.md has an entry for each group, and for no other.
func TestOperations(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/operations.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]int{}
	for _, m := range regexp.MustCompile("(?m)^### .*: `(.+)`$").FindAllSubmatch(text, -1) {
		entries[string(m[1])]++
	}
	for _, g := range Groups() {
		if entries[g.Name] != 1 {
			t.Errorf("%s has %d entries for the group %s", page, entries[g.Name], g.Name)
		}
		delete(entries, g.Name)
	}
	for name := range entries {
		t.Errorf("%s: no group is named %s", page, name)
	}
}

// TestDeployFiles: every file of deploy/ that pages or the catalogue name exists.
func TestDeployFiles(t *testing.T) {
	t.Parallel()
	const root = "../../.."
	pages, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	doctor, err := filepath.Glob(root + "/docs/doctor/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, page := range slices.Concat(pages, doctor, []string{root + "/README.md", root + "/CHANGELOG.md"}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		texts[page] = string(text)
	}
	named := 0
	for where, text := range texts {
		for _, m := range regexp.MustCompile(`(?:^|[^\w./-]|\.\./)(deploy/[\w./-]*\w)`).FindAllStringSubmatch(text, -1) {
			named++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which does not exist", where, m[1])
			}
		}
	}
	if named < 20 {
		t.Errorf("only %d files named", named)
	}
}
