package capacity

import (
	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
)

// New builds the command with its subcommands.
func New(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Plan how many pods fit on instance types and in subnets, and what settings cost",
		Long: `Plan how many pods fit on which instance type and into which subnets, and with which
settings. Works offline with a built-in table of 1,442 instance types; refresh adds what EC2
reports of newer ones.`,
		Example: "  {{.Command}} capacity type m5.large\n  {{.Command}} capacity type m5.4xlarge c6g.medium --prefix-delegation\n" +
			"  {{.Command}} capacity compare 'm7g.*' --pods 500\n" +
			"  {{.Command}} capacity subnet 10.0.0.0/22 --type m5.large --pods 20\n" +
			"  {{.Command}} capacity whatif --type m5.large --pods 20 --warm-ip-target 2\n  {{.Command}} capacity forecast week.cnirec",
		Args: cli.SubcommandArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(types(f), comparison(f), intoSubnets(f), whatIf(f), forecast(f), recommend(f), refresh(f))
	return cmd
}
