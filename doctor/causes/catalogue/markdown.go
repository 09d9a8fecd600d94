package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// Page returns where the documentation describes a cause.
func Page(code string) string {
	group, _, _ := strings.Cut(code, "/")
	return "docs/doctor/" + group + ".md#" + anchor(code)
}

func anchor(code string) string { return strings.ReplaceAll(code, "/", "") }

// Markdown returns the page of a group in docs/doctor.
func (g Group) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nCauses of the group `%s`, from the doctor's catalogue (`doctor/causes/catalogue`); `make generate` makes this page.\n", g.Title, g.Name)
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
	if first := e.Ceiling.Of(Modes()[0]); !slices.ContainsFunc(Modes(), func(mode string) bool { return e.Ceiling.Of(mode) != first }) {
		ceilings = []string{first.String()}
	}
	fact("Highest confidence", strings.Join(ceilings, ", "))
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
		if s.Note != "" {
			text += " (" + s.Note + ")"
		}
		fact("Text", text)
	}
	fact("Links", strings.Join(bracketed(e.Links), ", "))
}

// sentence capitalizes a title, unless it begins with a name that is written in lower case.
func sentence(title string) string {
	switch first, _, _ := strings.Cut(title, " "); first {
	case "aws-node", "eBPF", "max-pods", "systemd":
		return title
	}
	return strings.ToUpper(title[:1]) + title[1:]
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
