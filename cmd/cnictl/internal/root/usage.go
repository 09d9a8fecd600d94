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

// exampleCommand is the placeholder for the name of the tool in examples.
const exampleCommand = "{{.Command}}"

// usage prints a command's usage. The global flags have their own page, as in kubectl, so
// that a command's own flags are not lost among them.
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
			for _, g := range grouped(cmd) {
				fmt.Fprintf(&b, "\n%s:\n", g.title)
				for _, sub := range g.commands {
					fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
				}
			}
		}
		section(&b, "Flags", except(cmd.LocalFlags(), cmd.Root().PersistentFlags()))
		if cmd.HasHelpSubCommands() {
			b.WriteString("\nAdditional help topics:\n")
			for _, sub := range cmd.Commands() {
				if sub.IsAdditionalHelpTopicCommand() {
					fmt.Fprintf(&b, "  %-*s %s\n", sub.CommandPathPadding(), sub.CommandPath(), sub.Short)
				}
			}
		}
		b.WriteByte('\n')
		if cmd.HasAvailableSubCommands() {
			fmt.Fprintf(&b, "Use \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
		}
		fmt.Fprintf(&b, "Use \"%s options\" to list the global flags (-o, -l, -n, --context, --targets, --replay, …).\n", name)
		_, err := cmd.OutOrStderr().Write(b.Bytes())
		return err
	}
}

// groups are those of the root's commands in its help, in this order; a command that is in none
// comes last.
var groups = []struct{ title, names string }{
	{"See", "tui status nodes pods pod subnets trunks enis ips top events logs"},
	{"Explain", "doctor explain migrate bundle"},
	{"Plan", "capacity"},
	{"Record", "record replay"},
	{"Node", "node local"},
}

// group is a heading of a help with its commands.
type group struct {
	title    string
	commands []*cobra.Command
}

// grouped returns the subcommands of a command as its help lists them: those of the root in groups.
func grouped(cmd *cobra.Command) (out []group) {
	rest := slices.DeleteFunc(slices.Clone(cmd.Commands()),
		func(sub *cobra.Command) bool { return !sub.IsAvailableCommand() && sub.Name() != "help" })
	if cmd.HasParent() {
		return []group{{"Available Commands", rest}}
	}
	for _, g := range groups {
		one := group{title: g.title}
		for _, name := range strings.Fields(g.names) {
			if i := slices.IndexFunc(rest, func(sub *cobra.Command) bool { return sub.Name() == name }); i >= 0 {
				one.commands, rest = append(one.commands, rest[i]), slices.Delete(rest, i, i+1)
			}
		}
		out = append(out, one)
	}
	return append(out, group{"Settings and Help", rest})
}

// helpWidth is the most columns that a line of help takes.
const helpWidth = 100

func section(b *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\n%s:\n%s\n", title, strings.TrimRight(flags.FlagUsagesWrapped(helpWidth), " \n"))
	}
}

// except returns the flags that are in none of the other sets.
func except(flags *pflag.FlagSet, others ...*pflag.FlagSet) *pflag.FlagSet {
	out := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if !slices.ContainsFunc(others, func(o *pflag.FlagSet) bool { return o.Lookup(f.Name) != nil }) {
			out.AddFlag(f)
		}
	})
	return out
}

// options is the command that lists the global flags.
func options(f *cli.Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the global flags, which every command accepts",
		Long: `List the global flags, which every command accepts: this tool's own, and kubectl's flags for
connecting to a cluster, with kubectl's names and meanings.`,
		Example: "  {{.Command}} options",
		Args:    cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			kube := pflag.NewFlagSet("", pflag.ContinueOnError)
			cmd.Root().PersistentFlags().VisitAll(func(flag *pflag.Flag) {
				if cli.IsKubeFlag(flag) {
					kube.AddFlag(flag)
				}
			})
			var b bytes.Buffer
			b.WriteString("Every command accepts these flags.\n")
			section(&b, "Global Flags", except(cmd.Root().PersistentFlags(), kube))
			section(&b, "Flags of kubectl", kube)
			_, err := f.Streams.Out.Write(b.Bytes())
			return err
		},
	}
}

// connection is the help topic about reaching nodes.
const connection = `The nodes to read come from the first of these that applies: --targets; the cluster
that kubectl's flags, KUBECONFIG or ~/.kube/config select; this host, if it is a node;
the cluster that this pod runs in.

Nodes are reached through the API server's port-forward (--via selects another way), with
the permissions that deploy/rbac/cnictl.yaml grants. cnictl opens no port, neither on this
machine nor on a node.

NODE, and each name in --nodes, can be the node's full name, its name without the domain, its
instance ID, its internal address, or a prefix of its name that matches one node only. The TYPE/
that -o name and kubectl print before a name is accepted. If --nodes is given as well, NODE must
be one of them.

kubectl's flags (--kubeconfig, --context, -n, …) have kubectl's names and meanings:
"options" lists them.

-n NAMESPACE selects by the namespace of pods: in pods, events, ips, trunks, node ips, node pods
and node checkpoint (and local …), and in the screen of pods. It completes the NAME of a pod in
pod and doctor pod. Other commands refuse it. CNICTL_NAMESPACE, or namespace: in the settings
file, is its default; -A overrides it. The namespace of kubectl's current context is only used to
complete the NAME of a pod: without -n or its default, pods of all namespaces are shown.`
