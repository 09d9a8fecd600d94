package doctor

import (
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet/query"
	"cnictl/doctor/catalogue"
)

// New builds the command with its subcommands.
func New(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [list|explain]",
		Short: "Look up causes of pods without an address: signs, checks, fixes",
		Long: `Look up the known causes of pods without an address or a network: what each looks like, how
to tell it from others, and how to fix it. This needs no cluster.

To find the causes behind an error message use ` + f.Name + ` explain.`,
		Example: "  {{.Command}} doctor list\n  {{.Command}} doctor explain ip/subnet-exhausted",
		Args:    cli.SubcommandArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(list(f), explain(f))
	return cmd
}

// complete completes codes.
func complete(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if cmd.Name() != "explain" || len(args) == 0 {
		for e := range catalogue.All() {
			if strings.HasPrefix(e.Code, word) {
				out = append(out, e.Code+"\t"+e.Title)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// notFound is the error of a code or pattern that no cause has.
func notFound(f *cli.Factory, what, code string) error {
	e := &cli.Error{Code: cli.ExitNotFound, What: what, Do: f.Name + " doctor list"}
	if near := near(code); len(near) > 0 {
		e.Why = "did you mean " + strings.Join(near, " or ") + "?"
		if len(near) == 1 {
			e.Do = f.Name + " doctor explain " + near[0]
		}
	}
	return e
}

// near are the codes that are probably meant: the second half alone is enough.
func near(code string) []string {
	if near := query.Near(code, catalogue.Codes()); len(near) > 0 {
		return near
	}
	_, typed, both := strings.Cut(code, "/")
	if !both {
		typed = code
	}
	whole := map[string]string{}
	var names []string
	for _, c := range catalogue.Codes() {
		_, name, _ := strings.Cut(c, "/")
		whole[name] = c
		names = append(names, name)
	}
	found := query.Near(typed, names)
	for i, name := range found {
		found[i] = whole[name]
	}
	return found
}
