package root

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cnictl/cmd/cnictl/internal/cli"
)

// exampleCommand stands in examples for the name that the tool was called by.
const exampleCommand = "{{.Command}}"

// usage prints how a command is used. kubectl's flags have a page of their own, so that
// ours are not lost among them.
func usage(name string) func(*cobra.Command) error {
	return func(cmd *cobra.Command) error {
		var b bytes.Buffer
		b.WriteString("Usage:\n")
		if cmd.Runnable() {
			fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
		}
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "  %s [command]\n", cmd.CommandPath())
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\nExamples:\n%s\n", strings.ReplaceAll(cmd.Example, exampleCommand, name))
		}
		if cmd.HasAvailableSubCommands() {
			b.WriteString("\nAvailable Commands:\n")
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() || sub.Name() == "help" {
					fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
				}
			}
		}
		own := except(cmd.LocalFlags())
		global := except(cmd.InheritedFlags())
		if cmd == cmd.Root() {
			global = except(cmd.PersistentFlags())
			own = except(cmd.LocalFlags(), global)
		}
		section(&b, "Flags", own)
		section(&b, "Global Flags", global)
		fmt.Fprintf(&b, "\nkubectl's own flags (--kubeconfig, --context, -n, …) are taken too: %s help connection\n", name)
		if cmd.HasHelpSubCommands() {
			b.WriteString("\nAdditional help topics:\n")
			for _, sub := range cmd.Commands() {
				if sub.IsAdditionalHelpTopicCommand() {
					fmt.Fprintf(&b, "  %-*s %s\n", sub.CommandPathPadding(), sub.CommandPath(), sub.Short)
				}
			}
		}
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
		}
		_, err := cmd.OutOrStderr().Write(b.Bytes())
		return err
	}
}

func section(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\n%s:\n%s\n", title, strings.TrimRight(flags.FlagUsages(), " \n"))
	}
}

// except are the flags but for kubectl's and those of other sets.
func except(flags *pflag.FlagSet, others ...*pflag.FlagSet) *pflag.FlagSet {
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if !cli.IsKubeFlag(f) && !slices.ContainsFunc(others, func(o *pflag.FlagSet) bool { return o.Lookup(f.Name) != nil }) {
			out.AddFlag(f)
		}
	})
	return out
}

// connection is the page of kubectl's flags.
func connection(flags *pflag.FlagSet) string {
	kube := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if cli.IsKubeFlag(f) {
			kube.AddFlag(f)
		}
	})
	return `Where the nodes are comes from the first of these that there is: --targets; the
cluster of kubectl's flags, KUBECONFIG or ~/.kube/config; this host, when it is a node;
the cluster that this pod runs in.

Nodes are reached through the API server's port-forward (--via says otherwise), with
the rights that deploy/rbac/cnictl.yaml grants. Nothing listens on this machine and
nothing is opened on a node.

A NODE, and each of --nodes, is a node's name or that without its domain, its instance ID or
internal address, or the beginning of its name where no other node's begins so; the TYPE/
that -o name and kubectl put before a name may stand there. A NODE must be one of --nodes,
where both are given.

kubectl's flags have their own names and meanings:

` + strings.TrimRight(kube.FlagUsages(), "\n")
}
