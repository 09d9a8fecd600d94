// Package local implements cnictl local: the same verbs for the introspection server of this
// host. It needs no cluster, no flags and no credentials.
package local

import (
	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/doctor"
	"cnictl/cmd/cnictl/internal/node"
	"cnictl/cmd/cnictl/internal/status"
)

// New builds the command; local without a verb is local status.
func New(f *cli.Factory) *cobra.Command {
	st := status.New(f, access.LocalFleet)
	st.Short = "Show this node's pool and what is wrong"
	st.Long = `Show this node's pool and what is wrong: assigned, cooling and free addresses, room for
more, warm targets, max-pods and subnets.`
	st.Example = "  {{.Command}} local status\n  {{.Command}} local status -w"
	cmd := &cobra.Command{
		Use:   "local [VERB]",
		Short: "Inspect this node (run on the node itself)",
		Long: `Show the node that this runs on. The address of its introspection server is
INTROSPECTION_BIND_ADDRESS (unix:/path or host:port), as for the daemon, else
` + DefaultSocket + ` if it exists, else 127.0.0.1:61679.
No cluster and no credentials are needed, and nothing is changed.`,
		Example: "  {{.Command}} local\n  {{.Command}} local plan --warm-ip-target 5\n  {{.Command}} local raw --path /v1/enis",
		Args:    cli.SubcommandArgs,
		RunE:    st.RunE,
	}
	cmd.Flags().AddFlagSet(st.Flags())
	cmd.AddCommand(st)
	cmd.AddCommand(node.LocalVerbs(f)...)
	cmd.AddCommand(oldGet(f), newDial(f), doctor.NewLocal(f))
	return cmd
}

// oldGet is the former spelling of raw --path.
func oldGet(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:    "get PATH",
		Hidden: true,
		Args:   cli.Args(1, 1, "PATH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return node.Raw(cmd.Context(), f, &node.Options{Open: access.LocalFleet, Path: args[0]})
		},
	}
}
