package root

import (
	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/events"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/subnets"
)

// getCommand is for fingers that type kubectl: "get nodes" is nodes. Help does not list it.
const getCommand = "get"

func get(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use: getCommand, Hidden: true, Short: "The lists, by kubectl's words", Long: "The lists, by kubectl's words: get nodes is nodes.",
		Args: cli.SubcommandArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, cmdOf := range []func(*cli.Factory) *cobra.Command{
		list.NewNodes, list.NewPods, list.NewENIs, list.NewIPs, subnets.New, list.NewTrunks, events.New,
	} {
		noun := cmdOf(f)
		noun.Hidden = true
		if one := map[string]string{"nodes": "node", "pods": "pod"}[noun.Name()]; one != "" {
			noun.Aliases = append(noun.Aliases, one)
		}
		cmd.AddCommand(noun)
	}
	return cmd
}
