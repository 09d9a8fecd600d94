// Package root assembles the commands and runs them.
package root

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/about"
	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/capacity"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/doctor"
	"cnictl/cmd/cnictl/internal/events"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/local"
	"cnictl/cmd/cnictl/internal/logs"
	"cnictl/cmd/cnictl/internal/node"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/pod"
	"cnictl/cmd/cnictl/internal/record"
	"cnictl/cmd/cnictl/internal/status"
	"cnictl/cmd/cnictl/internal/subnets"
	"cnictl/cmd/cnictl/internal/tui"
)

// InvokedAs returns how the user calls a program file: kubectl runs kubectl-a_b-c as "kubectl
// a-b c".
func InvokedAs(argv0 string) string {
	name := strings.TrimSuffix(filepath.Base(argv0), ".exe")
	plugin, ok := strings.CutPrefix(name, "kubectl-")
	if !ok || plugin == "" {
		return "cnictl"
	}
	words := strings.Split(plugin, "-")
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "_", "-")
	}
	return "kubectl " + strings.Join(words, " ")
}

// New builds the command tree.
func New(f *cli.Factory) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "cnictl",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: f.Name},
		Short:       "See where every pod IP on your EKS nodes went, and why a pod has none",
		Long: `See where every pod IP on your EKS nodes went, and why a pod has none: which addresses are
used, cooling or free, what holds a pool back, what is wrong and how to fix it. Read-only:
nothing is ever changed.

Without a command it opens the screens. It reads the nodes of kubectl's current cluster;
--targets names other nodes, and on a node ` + f.Name + ` local needs no cluster.`,
		Example: "  {{.Command}}\n  {{.Command}} doctor\n  {{.Command}} pod shop/cart-7d9f-1\n" +
			"  {{.Command}} explain 'failed to assign an IP address to container'",
		Version:       f.Version, // for --version
		SilenceErrors: true, SilenceUsage: true,
		Args: cli.SubcommandArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if screens, _, err := cmd.Find([]string{"tui"}); err == nil && screens != cmd && (f.Streams.Interactive || f.Globals.Replay != "") {
				return f.RunAs(cmd.Context(), screens)
			}
			return cmd.Help()
		},
	}
	cmd.SetOut(f.Streams.Out)
	cmd.SetErr(f.Streams.Err)
	cmd.SetFlagErrorFunc(cli.FlagError)
	f.Prepare(cmd, checkNamespace(f), output.Check(f), f.Check, access.Replay(f), f.Page)
	completion.Flags(f, cmd)
	_ = cmd.RegisterFlagCompletionFunc("output", output.Complete) // fails only for unknown flags
	cmd.SetUsageFunc(usage(f.Name))
	cmd.AddCommand(about.NewConfig(f))
	cmd.AddCommand(status.New(f, nil), list.NewNodes(f), node.New(f), local.New(f), about.NewVersion(f))
	cmd.AddCommand(list.NewENIs(f), list.NewIPs(f), pod.New(f), list.NewPods(f), logs.New(f), events.New(f), list.NewTop(f))
	cmd.AddCommand(subnets.New(f), list.NewTrunks(f), doctor.New(f), doctor.NewMigrate(f), doctor.NewExplain(f), doctor.NewBundle(f),
		capacity.New(f))
	cmd.AddCommand(record.New(f), record.NewReplay(f), tui.New(f), options(f), get(f))
	cmd.AddCommand(topics()...)
	describeNamespace(cmd)
	cmd.InitDefaultHelpCmd()
	if help, _, err := cmd.Find([]string{"help"}); err == nil {
		help.Args = cli.HelpArgs
		help.Long = "Show the help of a command, or of a topic that " + f.Name + " --help lists."
		help.Example = "  {{.Command}} help nodes\n  {{.Command}} help exit-codes"
	}
	return cmd
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, f *cli.Factory, args []string) int {
	cmd := New(f)
	cmd.SetArgs(args)
	err := forceTTY(f)
	if err == nil {
		err = errors.Join(execute(ctx, cmd), f.Finish())
	}
	if cli.Interrupted(ctx, err) {
		err = cli.Exit(cli.ExitInterrupted)
	}
	return cli.Report(f.Streams.Err, f.Name, err)
}

// execute runs the command line. A usage error without a hint gets that of its command.
func execute(ctx context.Context, cmd *cobra.Command) error {
	ran, err := cmd.ExecuteContextC(ctx)
	var e *cli.Error
	if errors.As(err, &e) && e.Code == cli.ExitUsage && e.Do == "" {
		e.Do = ran.CommandPath() + " --help"
	}
	return err
}

func forceTTY(f *cli.Factory) error {
	value, _ := f.Env("CNICTL_FORCE_TTY")
	return f.Streams.ForceTTY(value)
}
