package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/causes/catalogue"
	"cnictl/tui/query"
)

type row = *catalogue.Entry

func list(f *cli.Factory) *cobra.Command {
	list := &output.List[row]{
		Columns: columns(), Class: class, Free: "title",
		Key: func(e row) string { return e.Code }, Item: func(e row) any { return causeOf(e) },
	}
	cmd := &cobra.Command{
		Use:   "list [CODE|GROUP|GLOB…]",
		Short: "List the known causes: code, severity, sources of evidence",
		Long: `List the known causes with the sources of evidence that each requires. Arguments are codes,
groups or patterns in which * matches any text.`,
		Example: "  {{.Command}} doctor list\n  {{.Command}} doctor list ip 'boot/*'\n" +
			"  {{.Command}} doctor list --filter severity=critical -o name",
		Args:              cli.Args(0, -1, ""),
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			rows, err := matching(f, args)
			if err != nil {
				return err
			}
			return list.Print(f, rows, func(chosen []row) any {
				doc := document.CauseList{
					APIVersion: introspect.APIVersion, Kind: document.KindCauseList,
					Items: []document.Cause{}, Errors: []document.NodeError{}, SampledAt: f.Now().UTC(),
				}
				for _, e := range chosen {
					doc.Items = append(doc.Items, causeOf(e))
				}
				return doc
			})
		},
	}
	list.Register(f, cmd, false)
	return cmd
}

// matching returns the entries that the arguments match; all without arguments.
func matching(f *cli.Factory, args []string) ([]row, error) {
	all := slices.Collect(catalogue.All())
	if len(args) == 0 {
		return all, nil
	}
	chosen := map[string]bool{}
	for _, arg := range args {
		pattern := arg
		if !strings.ContainsAny(arg, "/*") {
			pattern += "/*"
		}
		found := false
		for _, e := range all {
			if query.Glob(e.Code, strings.ToLower(pattern)) {
				chosen[e.Code], found = true, true
			}
		}
		if !found {
			return nil, notFound(f, fmt.Sprintf("no cause matches %s", arg), arg)
		}
	}
	return slices.DeleteFunc(all, func(e row) bool { return !chosen[e.Code] }), nil
}

func columns() []query.Column[row] {
	joined := func(names []string) string { return strings.Join(names, ",") }
	return []query.Column[row]{
		{Name: "code", Header: "CODE", Title: "code of the cause", Text: func(e row) string { return e.Code }},
		{
			Name: "severity", Header: "SEVERITY", Title: "info, warning, error or critical",
			Text: func(e row) string { return e.Severity.String() }, Rank: func(e row) int { return int(e.Severity) },
		},
		{Name: "title", Header: "TITLE", Title: "what is wrong", Text: func(e row) string { return e.Title }},
		{Name: "required", Header: "REQUIRES", Title: "sources of evidence that it requires", Drop: 1,
			Text: func(e row) string { return joined(e.Required) }},
		{Name: "supporting", Header: "SUPPORTED BY", Title: "sources of evidence that raise the confidence", Wide: true,
			Text: func(e row) string { return joined(e.Supporting) }},
		{Name: "daemon", Header: "DAEMON CODES", Title: "cause codes of our daemon that indicate it", Wide: true,
			Text: func(e row) string { return joined(daemonCodes(e)) }},
	}
}

func class(e row, column string) paint.Class {
	switch {
	case column == "required", column == "supporting", column == "daemon":
		return paint.Dim
	case column == "severity":
		return Class(e.Severity)
	}
	return paint.Plain
}

// Class returns the colour of a severity.
func Class(s catalogue.Severity) paint.Class {
	switch {
	case s >= catalogue.Error:
		return paint.Bad
	case s == catalogue.Warning:
		return paint.Warn
	}
	return paint.Dim
}
