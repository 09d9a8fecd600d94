package local

import (
	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/node"
)

// newGet builds local get, which the other end of an exec runs too: it needs nothing but
// the node's own socket.
func newGet(f *cli.Factory, run node.Run) *cobra.Command {
	if run == nil {
		run = node.Raw
	}
	return &cobra.Command{
		Use:   "get PATH",
		Short: "Print the raw response of this node's introspection server",
		Long: `GET a path of this node's introspection server and print the response unchanged, up to
8 MiB. On a terminal, control characters are escaped. docs/introspection.md lists the paths.`,
		Example: `  {{.Command}} local get /v1/enis
  {{.Command}} local get '/v1/plan?warmIp=5'`,
		Args: cli.Args(1, 1, "PATH"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return node.Paths(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), f, &node.Options{Open: access.LocalFleet, Path: args[0]})
		},
	}
}
