package node

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/list"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/inventory"
)

// Options are the arguments and flags of a node command.
type Options struct {
	Name string // "" = the only node
	Open access.Opener

	ENIs *output.List[document.ENIItem]      // enis: rows and columns
	IPs  *output.List[inventory.HeldAddress] // ips: rows and columns
	Pods *output.List[*inventory.Pod]        // pods: rows and columns

	Plan introspect.PlanQuery // plan: other targets to try
	Path string               // raw: path on the introspection server
	Raw  bool                 // metrics: the daemon's own text
	File string               // local checkpoint: read this file; "" = ask the daemon
}

// Run executes one of the commands.
type Run func(context.Context, *cli.Factory, *Options) error

// New builds cnictl node with its verbs; node NODE is node show NODE.
func New(f *cli.Factory) *cobra.Command {
	verbs := verbsOf(f)
	show := command(f, verbs[0], " NODE")
	cmd := &cobra.Command{
		Use:   "node [show|enis|ips|pods|config|plan|metrics|checkpoint|raw] NODE",
		Short: "Show one node: its pool, ENIs, addresses, pods, settings, next steps",
		Long: `Show one node. Without a verb it shows everything about its pool, as ` + f.Name + ` node show.
This is read-only; nothing on the node is changed.`,
		Example:           examples(f.Name+" node", "{} ip-10-0-3-17\n{} plan ip-10-0-3-17\n{} ips ip-10-0-3-17 --filter state=cooling"),
		Args:              cli.Args(1, 1, "NODE"),
		ValidArgsFunction: completion.Nodes(f),
		RunE:              show.RunE,
	}
	cmd.AddCommand(show)
	for _, v := range verbs[1:] {
		cmd.AddCommand(command(f, v, " NODE"))
	}
	return cmd
}

// LocalVerbs returns the same commands for the node they run on.
func LocalVerbs(f *cli.Factory) []*cobra.Command {
	var cmds []*cobra.Command
	for _, v := range verbsOf(f) {
		cmds = append(cmds, command(f, v, ""))
	}
	return cmds
}

type verb struct {
	name, short, long, example string
	run                        Run
	flags                      func(cmd *cobra.Command, local bool) (fill func(*Options) error) // nil if none
}

// verbsOf lists the verbs; the first is the default. In examples NODE is replaced by the
// node's name.
func verbsOf(f *cli.Factory) []verb {
	return []verb{
		{name: "show", short: "Show one node in full: limits, pool, back-offs, errors, ENIs",
			long: `Show one node in full: its instance and daemon, how it was reached, its limits and the
calculation of max-pods, its pool and targets, back-offs, recent errors, and ENIs.`,
			example: "{}\n{} -o json", run: Show},
		{name: "enis", short: "List the ENIs: card, device, kind, addresses, route table",
			long: `List the node's ENIs: network card and device index, kind, assigned, cooling and free
addresses, route table and subnet.`,
			example: "{}\n{} -o wide", run: ENIs,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				list := list.ENIs(false)
				list.Register(f, cmd, false)
				return func(o *Options) error { o.ENIs = list; return nil }
			}},
		{name: "ips", short: "List the addresses: ENI, state, pod, age",
			long: `List the addresses: ENI, state (assigned, cooling, free), time in that state, and pod.
Addresses of a prefix that were never used share one line.`,
			example: "{}\n{} --filter 'state=cooling for>20s'", run: IPs,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				list := list.Addresses(false)
				list.Register(f, cmd, false)
				return func(o *Options) error { o.IPs = list; return nil }
			}},
		{name: "pods", short: "List the pods with their addresses, and why some don't have one",
			long: `List the node's pods from Kubernetes with the addresses that the daemon assigned to them.
For a pod that should have an address but doesn't, the reason is shown: its last failed ADD,
what blocks the pool, or its own state. Without an API server only the daemon's view is shown.`,
			example: "{}\n{} --filter 'state!=assigned' --columns pod,state,why", run: Pods,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				list := list.Pods(false)
				list.Register(f, cmd, false)
				return func(o *Options) error { o.Pods = list; return nil }
			}},
		{name: "config", short: "List the daemon's settings: declared, effective, source, problem",
			long: `List the daemon's settings: the declared value (aws-node's environment), the effective
value and where it comes from, whether this daemon uses the setting, and what is wrong with it.
The upstream daemon does not report its settings, and the command fails with exit code 5.`,
			example: "{}\n{} -o json", run: Config},
		{name: "plan", short: "Show what the pool will do next, or would do with other targets",
			long: `Show what ipamd will do next with this node's pool and why, what blocks it, and which
targets are out of reach. If you give other targets, the plan for them is shown too. Nothing
is changed: the daemon computes both plans with the code that makes its real ones.
The upstream daemon does not report a plan, and the command fails with exit code 5.`,
			example: "{}\n{} --warm-ip-target 5 --minimum-ip-target 10", run: Plan,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				query := planFlags(cmd)
				return func(o *Options) (err error) { o.Plan, err = query(); return err }
			}},
		{name: "metrics", short: "List the daemon's metrics",
			long: `List the daemon's metrics, one row per sample. -o wide adds histogram buckets and the help
text of each metric. --raw prints the Prometheus text unchanged.`, example: "{}\n{} --raw", run: Metrics,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				raw := cmd.Flags().Bool("raw", false, "print the Prometheus text unchanged")
				return func(o *Options) error { o.Raw = *raw; return nil }
			}},
		{name: "checkpoint", short: "List the allocations that survive a restart of the daemon",
			long: `List the daemon's current allocations. It writes them to its checkpoint and restores them
when it restarts.`,
			example: "{}\n{} -o json", run: Checkpoint, flags: checkpointFlags},
		{name: "raw", short: "Print the raw response of the introspection server",
			long: `GET a path of the node's introspection server and print the response unchanged, up to 8 MiB.
On a terminal, control characters are escaped. docs/introspection.md lists the paths.`,
			example: "{} --path /v1/enis\n{} --path '/v1/plan?warmIp=5'", run: Raw,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				path := cmd.Flags().String("path", "/v1/summary", "`PATH` to read, with its query string")
				_ = cmd.RegisterFlagCompletionFunc("path", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return Paths(), cobra.ShellCompDirectiveNoFileComp
				})
				return func(o *Options) error { o.Path = *path; return nil }
			}},
	}
}

// checkpointFlags adds --file only for the local node, where the file can be read.
func checkpointFlags(cmd *cobra.Command, local bool) func(*Options) error {
	if !local {
		return nil
	}
	cmd.Long += "\n\nWith --file it reads the checkpoint file itself, which needs root but no running daemon."
	file := cmd.Flags().String("file", "", "checkpoint `FILE` to read; without a value: "+netnames.CheckpointFile)
	cmd.Flags().Lookup("file").NoOptDefVal = netnames.CheckpointFile
	return func(o *Options) error { o.File = *file; return nil }
}

// Paths are the known paths of the introspection server.
func Paths() []string {
	return append(slices.Clone(introspect.DocumentPaths), introspect.PathLogs, introspect.PathSubnetHistory, introspect.PathSchemas)
}

// command builds the command of a verb, for a named node or for this host.
func command(f *cli.Factory, v verb, args string) *cobra.Command {
	local := args == ""
	cmd := &cobra.Command{Use: v.name + args, Short: v.short, Long: v.long, Args: cli.Args(1, 1, "NODE"),
		ValidArgsFunction: completion.Nodes(f)}
	where := f.Name + " node " + v.name + " ip-10-0-3-17"
	if local {
		cmd.Args, cmd.ValidArgsFunction = cli.Args(0, 0, ""), nil
		where = f.Name + " local " + v.name
	}
	cmd.Example = examples(where, v.example)
	var fill func(*Options) error
	if v.flags != nil {
		fill = v.flags(cmd, local)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		opts := &Options{Open: access.Fleet}
		if local {
			opts.Open = access.LocalFleet
		} else {
			opts.Name = args[0]
			opts.Open = func(ctx context.Context, f *cli.Factory) (*fleet.Fleet, error) {
				nodes, err := access.FleetOf(ctx, f, []string{opts.Name})
				if err == nil {
					opts.Name = nodes.Names()[0]
				}
				return nodes, err
			}
		}
		if fill != nil {
			if err := fill(opts); err != nil {
				return err
			}
		}
		return v.run(cmd.Context(), f, opts)
	}
	return cmd
}

// examples replaces each {} with a command line.
func examples(line, text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.ReplaceAll(text, "{}", line), "\n", "\n  ")
}

// write prints text unchanged.
func write(f *cli.Factory, text string) error {
	if _, err := io.WriteString(f.Streams.Out, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
