package doctor

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/show"
)

func explain(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "explain CODE",
		Short: "Show one cause: what it looks like, how to check for it, how to fix it",
		Long: `Show one cause: what it looks like, how to distinguish it from similar causes, and how to fix it,
with the side effects of each fix. In commands, replace words in CAPITALS.`,
		Example:           "  {{.Command}} doctor explain ip/subnet-exhausted\n  {{.Command}} doctor explain eni/leaked -o json",
		Args:              cli.Args(1, 1, "CODE"),
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := output.Refuse(f, output.CSV); err != nil {
				return err
			}
			code := strings.ToLower(strings.TrimPrefix(args[0], "cause.cnictl/"))
			e, ok := catalogue.Lookup(code)
			if !ok {
				return notFound(f, "there is no cause "+args[0], code)
			}
			if output.Structured(f) {
				doc := document.CauseDocument{APIVersion: introspect.APIVersion, Kind: document.KindCause, Cause: causeOf(e)}
				return output.PrintDocument(f, doc, false)
			}
			return output.PrintLines(f, page(f, e))
		},
	}
}

// page formats a catalogue entry for people.
func page(f *cli.Factory, e *catalogue.Entry) []string {
	p := output.Page{Opts: output.TableOptions(f)}
	p.Line(Heading(e, e.Title)...)
	p.Lines = append(p.Lines, "")
	field := func(label, value string) { field(&p, label, value) }
	field("shows", e.Shows)
	p.Lines = append(p.Lines, "")
	Check(&p, f, e.Check)
	for i, fix := range e.Fixes {
		p.Lines = append(p.Lines, "")
		p.Field(fmt.Sprintf("fix %d", i+1), fix.Text)
		Command(&p, f, fix.Command)
		if fix.SideEffect != "" || fix.Risk > catalogue.NoRisk {
			p.Field("", strings.TrimSpace("risk: "+fix.Risk.String()+". "+fix.SideEffect))
		}
	}
	p.Lines = append(p.Lines, "")
	field("requires", strings.Join(e.Required, "  "))
	field("also uses", strings.Join(e.Supporting, "  "))
	var most []string
	for _, mode := range catalogue.Modes() {
		most = append(most, e.Ceiling.Of(mode).String()+" ("+mode+")")
	}
	field("confidence", "at most "+strings.Join(most, ", "))
	field("upstream", e.Upstream)
	if e.Ours != "" {
		field("ours", "cannot have it: "+e.Ours)
	}
	field("explains", strings.Join(e.Explains, "  "))
	field("caused by", strings.Join(e.ExplainedBy(), "  "))
	field("daemon", strings.Join(daemonCodes(e), "  "))
	label := "texts"
	for _, s := range e.Signatures {
		text := s.Text + "  (" + strings.Join(s.Where, ", ") + ")"
		if s.Note != "" {
			text += "  " + s.Note
		}
		p.Field(label, text)
		label = ""
	}
	label = "links"
	for _, link := range e.Links {
		p.Field(label, link)
		label = ""
	}
	return p.Lines
}

// Check adds a check: what to look at next.
func Check(p *output.Page, f *cli.Factory, c catalogue.Check) {
	p.Field("check", c.Text)
	Command(p, f, c.Command)
}

// Command adds a command on a line of its own, which is never wrapped, so that it can be
// copied.
func Command(p *output.Page, f *cli.Factory, command string) {
	if command != "" {
		p.Lines = append(p.Lines, strings.Repeat(" ", 12)+"$ "+show.Printable(Named(f, command)))
	}
}

// Heading is the first line of the page of a cause.
func Heading(e *catalogue.Entry, title string) []table.Cell {
	gap := table.Cell{Text: "  "}
	return []table.Cell{{Text: e.Code, Class: paint.Head}, gap, {Text: e.Severity.String(), Class: Class(e.Severity)}, gap, {Text: title}}
}

// Named returns a command with this tool's name as the user calls it.
func Named(f *cli.Factory, command string) string {
	if rest, ok := strings.CutPrefix(command, "cnictl "); ok {
		return f.Name + " " + rest
	}
	return strings.ReplaceAll(command, "| cnictl ", "| "+f.Name+" ")
}
