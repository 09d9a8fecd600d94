package node

import (
	"context"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/fleet"
)

// Options are what a node command was asked for.
type Options struct {
	Name string // "" = the only node there is
	Open func(context.Context) (*fleet.Fleet, error)
}

// Run does the work of one of the commands.
type Run func(context.Context, *cli.Factory, *Options) error

// Runs are the works by verb; nil members are the real ones.
type Runs struct{ Show, ENIs, IPs, Config Run }

// New builds cnictl node with its verbs; node NODE alone is node show NODE.
func New(f *cli.Factory, runs Runs) *cobra.Command {
	show := command(f, verb{"show NODE", "Show one node in full: limits, pool, clocks, errors, ENIs", "", runs.Show, Show})
	cmd := &cobra.Command{
		Use:               "node [show|enis|ips|config] NODE",
		Short:             "Show one node: its pool, ENIs, addresses or settings",
		Args:              cli.Args(1, 1, "NODE"),
		ValidArgsFunction: f.CompleteNodes,
		RunE:              show.RunE,
	}
	cmd.AddCommand(show)
	for _, v := range rest(runs) {
		v.use += " NODE"
		cmd.AddCommand(command(f, v))
	}
	return cmd
}

// LocalVerbs are the same commands for the node they run on.
func LocalVerbs(f *cli.Factory, runs Runs) []*cobra.Command {
	verbs := append([]verb{{"show", "Show this node in full: limits, pool, clocks, errors, ENIs", "", runs.Show, Show}}, rest(runs)...)
	var cmds []*cobra.Command
	for _, v := range verbs {
		run := pick(v.run, v.real)
		cmds = append(cmds, &cobra.Command{
			Use: v.use, Short: v.short, Long: v.long, Args: cli.Args(0, 0, ""),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return run(cmd.Context(), f, &Options{Open: f.LocalFleet})
			},
		})
	}
	return cmds
}

type verb struct {
	use, short, long string
	run, real        Run
}

func rest(runs Runs) []verb {
	return []verb{
		{"enis", "List the ENIs: card, device, kind, addresses, route table", "", runs.ENIs, ENIs},
		{"ips", "List the addresses: ENI, state, pod, age", `List the addresses: ENI, state (assigned, cooling, free), pod, and for how long.
Of a prefix the addresses never used are one line.`, runs.IPs, IPs},
		{"config", "List the settings: declared, effective, source, problem", "", runs.Config, Config},
	}
}

func command(f *cli.Factory, v verb) *cobra.Command {
	run := pick(v.run, v.real)
	return &cobra.Command{
		Use: v.use, Short: v.short, Long: v.long, Args: cli.Args(1, 1, "NODE"), ValidArgsFunction: f.CompleteNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), f, &Options{Name: args[0], Open: f.Fleet})
		},
	}
}

func pick(run, real Run) Run {
	if run != nil {
		return run
	}
	return real
}
