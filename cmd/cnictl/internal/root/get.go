package root

import (
	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/enis"
	"cnictl/cmd/cnictl/internal/events"
	"cnictl/cmd/cnictl/internal/ips"
	"cnictl/cmd/cnictl/internal/nodes"
	"cnictl/cmd/cnictl/internal/pods"
	"cnictl/cmd/cnictl/internal/subnets"
	"cnictl/cmd/cnictl/internal/trunks"
)

// getCommand is for fingers that type kubectl: "get nodes" is nodes. Help does not list it.
const getCommand = "get"

func get(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use: getCommand, Hidden: true, Short: "The lists, by kubectl's words", Long: "The lists, by kubectl's words: get nodes is nodes.",
		Args: cli.SubcommandArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, list := range []*cobra.Command{nodes.New(f), pods.New(f), enis.New(f), ips.New(f), subnets.New(f), trunks.New(f), events.New(f)} {
		list.Hidden = true
		if one := map[string]string{"nodes": "node", "pods": "pod"}[list.Name()]; one != "" {
			list.Aliases = append(list.Aliases, one)
		}
		cmd.AddCommand(list)
	}
	return cmd
}
