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
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "doctor [NODE…]",
		Short: "Find out why pods get no address or no network, and how to fix it",
		Long: `Find out why pods get no address or no network: which of the known causes the evidence
shows, how sure that is, and how to fix it. Nothing is changed.

A finding is confirmed when everything was seen that its cause requires, probable when the
telling fact was seen, and suspected when only symptom and settings fit. What could not be
read is listed: without findings, and with causes undecided, the exit status is 7.`,
		Example: "  {{.Command}} doctor --evidence situation.yaml\n  {{.Command}} doctor --evidence situation.yaml --fix\n" +
			"  {{.Command}} doctor list\n  {{.Command}} doctor explain ip/subnet-exhausted",
		Args: cli.Args(0, -1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.check(f); err != nil {
				return err
			}
			if opts.Evidence == "" {
				return cmd.Help()
			}
			ev, err := opts.load(f)
			if err != nil {
				return err
			}
			return Examine(cmd.Context(), f, opts, ev)
		},
	}
	opts.register(cmd)
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
