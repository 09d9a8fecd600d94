package doctor

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes"
	"cnictl/doctor/causes/catalogue"
)

// mostText bounds the text that is read from standard input.
const mostText = 1 << 20

// explainOptions are the arguments and flags of explain.
type explainOptions struct{ Text string }

// NewExplain builds the command.
func NewExplain(f *cli.Factory) *cobra.Command {
	opts := &explainOptions{}
	return &cobra.Command{
		Use:   "explain [TEXT…]",
		Short: "Find the causes behind an error message, event or log line",
		Long: `Find the causes behind a text: an error message, the message of an event, lines of a log,
of the CNI and of the programs around it, even if cut, wrapped or slightly reworded. Without TEXT
it reads standard input, up to 1 MiB.

Each candidate is shown with the text that it was recognised by and what to check next. Commands
have the names of pods, interfaces and so on that the line has. No node and no API server is
contacted.`,
		Example: "  {{.Command}} explain 'failed to assign an IP address to container'\n" +
			"  kubectl -n kube-system logs ds/aws-node -c aws-node | {{.Command}} explain\n  {{.Command}} explain InsufficientCidrBlocks -o json",
		Args: cli.Args(0, -1, ""),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			opts.Text = strings.Join(args, " ")
			if len(args) == 0 || len(args) == 1 && args[0] == "-" {
				text, err := readText(f)
				if err != nil {
					return err
				}
				opts.Text = text
			}
			return explainText(f, opts)
		},
	}
}

// readText reads standard input.
func readText(f *cli.Factory) (string, error) {
	if f.Streams.Interactive || f.Streams.In == nil {
		return "", &cli.Error{Code: cli.ExitUsage, What: "missing TEXT", Why: "standard input is a terminal", Do: f.Name + " explain 'TEXT'"}
	}
	text, err := io.ReadAll(io.LimitReader(f.Streams.In, mostText+1))
	if err != nil {
		return "", fmt.Errorf("read standard input: %w", err)
	}
	if len(text) > mostText {
		f.Warn("only the first %d MiB of standard input were read", mostText>>20)
	}
	return string(text[:min(len(text), mostText)]), nil
}

// explainText explains the text.
func explainText(f *cli.Factory, opts *explainOptions) error {
	if err := output.Refuse(f, output.CSV, output.Name); err != nil {
		return err
	}
	if strings.TrimSpace(opts.Text) == "" {
		return &cli.Error{Code: cli.ExitUsage, What: "the text is empty", Do: f.Name + " explain 'TEXT'"}
	}
	found := catalogue.Explain(opts.Text)
	if output.Structured(f) {
		if err := output.PrintDocument(f, candidatesOf(f, opts.Text, found), false); err != nil {
			return err
		}
	} else if len(found) > 0 {
		if err := output.PrintLines(f, candidateLines(f, opts.Text, found)); err != nil {
			return err
		}
	}
	if len(found) == 0 {
		return unknownText(f, opts.Text)
	}
	return nil
}

// unknownText says that the text is not recognised, and who prints such lines if that is known.
func unknownText(f *cli.Factory, text string) error {
	out := &cli.Error{
		Code: cli.ExitNotFound, What: "no known cause has this text",
		Why: fmt.Sprintf("none of the %d causes has a similar text; that does not mean that nothing is wrong", len(catalogue.Codes())),
		Do:  f.Name + " explain < FILE with more of the log, or " + f.Name + " doctor list",
	}
	if p, ok := catalogue.PrinterOf(text); ok {
		out.Why = "it looks like a line of " + p.Component
		if p.About != "" {
			out.Why += " (" + p.About + ")"
		}
		out.Why += ", and is not one that is known here"
		if p.Meaning != "" {
			out.Why = p.Component + ": " + p.About + ". " + p.Meaning
		}
		out.Do = Named(f, p.Check.Command)
	}
	return out
}

// candidateLines formats the candidates for people.
func candidateLines(f *cli.Factory, text string, found []catalogue.Candidate) []string {
	p := output.Page{Opts: output.TableOptions(f)}
	several := strings.Count(strings.TrimSpace(text), "\n") > 0
	first := ""
	for i, c := range found {
		if i > 0 {
			p.Lines = append(p.Lines, "")
		}
		if e := c.Entry; e != nil {
			p.Line(Heading(e, c.Title())...)
		} else {
			kind := "symptom"
			if c.Normal() {
				kind = "normal"
			}
			p.Line(table.Cell{Text: c.Title(), Class: paint.Head}, table.Cell{Text: "  "}, table.Cell{Text: kind, Class: paint.Dim})
		}
		if c.Symptom != nil {
			p.Field("means", c.Meaning())
		}
		p.Field("matches", matched(c, several))
		if c.Component() != "" {
			p.Field("from", c.Component())
		}
		if c.Signature.Note != "" {
			p.Field("but", c.Signature.Note)
		}
		if c.Entry == nil && len(c.Causes()) > 0 {
			p.Field("causes", strings.Join(c.Causes(), "  "))
		}
		if e := c.Likeliest(); e != nil {
			first = cmp.Or(first, e.Code)
		}
		names := catalogue.NamesIn(lineOf(text, c.Line))
		Check(&p, f, checkOf(c, names))
		if fix, ok := c.Fix(); ok && i == 0 {
			fix = fixWith(fix, names)
			p.Field("fix", fix.Text)
			Command(&p, f, fix.Command)
		}
	}
	if first != "" {
		p.Lines = append(p.Lines, "")
		p.Line(table.Cell{Text: "fixes: " + f.Name + " doctor explain " + first, Class: paint.Dim})
	}
	return p.Lines
}

// lineOf returns a line of a text, by its number from 1.
func lineOf(text string, n int) string {
	for line := range strings.Lines(text) {
		if n--; n == 0 {
			return line
		}
	}
	return ""
}

// checkOf returns the check of a candidate with what its line names.
func checkOf(c catalogue.Candidate, names map[string]string) catalogue.Check {
	check := c.Check()
	check.Command = causes.Fill(check.Command, names)
	return check
}

// fixWith returns a fix with what a line names.
func fixWith(fix catalogue.Fix, names map[string]string) catalogue.Fix {
	fix.Text, fix.Command = causes.Fill(fix.Text, names), causes.Fill(fix.Command, names)
	return fix
}

// matched describes what was recognised, and how.
func matched(c catalogue.Candidate, several bool) string {
	text := c.Signature.Text
	switch c.How {
	case catalogue.ByCode:
		text += " (a code)"
	case catalogue.Cut:
		text += " (cut)"
	case catalogue.Reworded:
		text += " (similar words)"
	}
	if several {
		text += fmt.Sprintf(", line %d", c.Line)
	}
	return text
}

func candidatesOf(f *cli.Factory, text string, found []catalogue.Candidate) document.CandidateList {
	doc := document.CandidateList{
		APIVersion: introspect.APIVersion, Kind: document.KindCandidateList,
		Items: []document.Candidate{}, Errors: []document.NodeError{}, SampledAt: f.Now().UTC(),
	}
	if p, ok := catalogue.PrinterOf(text); ok && len(found) == 0 {
		doc.PrintedBy = &document.Printer{Component: p.Component, About: p.About, Check: document.CauseCheck(p.Check)}
		if p.Meaning != "" {
			doc.PrintedBy.About += ". " + p.Meaning
		}
	}
	for _, c := range found {
		names := catalogue.NamesIn(lineOf(text, c.Line))
		item := document.Candidate{
			Causes: []string{}, How: c.How, Line: c.Line, Check: document.CauseCheck(checkOf(c, names)),
			Signature: document.CauseSignature{Text: c.Signature.Text, Sources: append([]string{}, c.Signature.Where...), Note: c.Signature.Note},
			Title:     c.Title(), Meaning: c.Meaning(), Component: c.Component(), Normal: c.Normal(), Fixes: []document.CauseFix{},
		}
		for _, fix := range c.Fixes() {
			item.Fixes = append(item.Fixes, FixOf(fixWith(fix, names)))
		}
		if e := c.Entry; e != nil {
			item.Code, item.Severity = e.Code, e.Severity.String()
		} else {
			item.Causes = append(item.Causes, c.Causes()...)
		}
		doc.Items = append(doc.Items, item)
	}
	return doc
}
