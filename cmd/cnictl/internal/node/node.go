package node

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/completion"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/pool"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
)

// Options are what a node command was asked for.
type Options struct {
	Name string // "" = the only node there is
	Open access.Opener

	ENIs *output.List[introspect.ENIItem] // enis: rows and columns
	IPs  *output.List[pool.Address]       // ips: rows and columns

	Plan introspect.PlanQuery // plan: other targets
	Path string               // raw: of the introspection server
	Raw  bool                 // metrics: the node's own text
	File string               // local checkpoint: read this file; "" = ask the daemon
}

// Run does the work of one of the commands.
type Run func(context.Context, *cli.Factory, *Options) error

// Runs are the works by verb; nil members are the real ones.
type Runs struct{ Show, ENIs, IPs, Pods, Config, Plan, Metrics, Checkpoint, Raw Run }

// New builds cnictl node with its verbs; node NODE alone is node show NODE.
func New(f *cli.Factory, runs Runs) *cobra.Command {
	verbs := verbsOf(f, runs)
	show := command(f, verbs[0], " NODE")
	cmd := &cobra.Command{
		Use:   "node [show|enis|ips|pods|config|plan|metrics|checkpoint|raw] NODE",
		Short: "Show one node: its pool, ENIs, addresses, pods, settings, next steps",
		Long: `Show one node: without a verb all that is known of its pool, as ` + f.Name + ` node show. The
verbs show a side of it each. Everything is read; nothing on the node is changed.`,
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

// LocalVerbs are the same commands for the node they run on.
func LocalVerbs(f *cli.Factory, runs Runs) []*cobra.Command {
	var cmds []*cobra.Command
	for _, v := range verbsOf(f, runs) {
		cmds = append(cmds, command(f, v, ""))
	}
	return cmds
}

type verb struct {
	name, short, long, example string
	run, real                  Run
	flags                      func(cmd *cobra.Command, local bool) (fill func(*Options) error) // nil: none
}

// verbsOf lists the verbs; the first is what is meant without one. In examples NODE
// stands for the node's name.
func verbsOf(f *cli.Factory, runs Runs) []verb {
	return []verb{
		{name: "show", short: "Show one node in full: limits, pool, clocks, errors, ENIs", long: `Show one node in full: what it is and how it was reached, its limits and the arithmetic of
max-pods, pool and targets, what it waits for, its last errors, and its ENIs.`,
			example: "{}\n{} -o json", run: runs.Show, real: Show},
		{name: "enis", short: "List the ENIs: card, device, kind, addresses, route table", long: `List the ENIs of the node: card and device, what kind each is, how many addresses pods
have, rest and are free, its route table and subnet.`,
			example: "{}\n{} -o wide", run: runs.ENIs, real: ENIs,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				list := pool.NewENIList(false)
				list.Register(f, cmd, false)
				return func(o *Options) error { o.ENIs = list; return list.Check(f) }
			}},
		{name: "ips", short: "List the addresses: ENI, state, pod, age", long: `List the addresses: ENI, state (assigned, cooling, free), pod, and for how long.
Of a prefix the addresses never used are one line.`,
			example: "{}\n{} --filter 'state=cooling for>20s'", run: runs.IPs, real: IPs,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				list := pool.NewAddressList(false)
				list.Register(f, cmd, false)
				return func(o *Options) error { o.IPs = list; return list.Check(f) }
			}},
		{name: "pods", short: "List the pods with their addresses, and why some have none", long: `List the pods of the node: what Kubernetes has there, joined with the addresses that the
daemon gave. A pod without an address that should have one says why: its last failed ADD,
what blocks the pool, its own state. Without an API server the daemon's side alone is shown.`,
			example: "{}\n{} -o wide", run: runs.Pods, real: Pods},
		{name: "config", short: "List the settings: declared, effective, source, problem", long: `List the settings of the daemon: what was declared (the environment of aws-node), what is
in effect and where that is from, whether this daemon acts on it, and what is wrong with it.`,
			example: "{}\n{} -o json", run: runs.Config, real: Config},
		{name: "plan", short: "Show what the pool would do next, and under other targets", long: `Show what ipamd would do next with this node's pool and why; what is in the way; which
targets are out of reach. With other targets the two are shown beside each other. Nothing
is done: the daemon computes both as it computes what it does.`,
			example: "{}\n{} --warm-ip-target 5 --minimum-ip-target 10", run: runs.Plan, real: Plan,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				query := planFlags(cmd)
				return func(o *Options) (err error) { o.Plan, err = query(); return err }
			}},
		{name: "metrics", short: "List the metrics of the daemon", long: `List the metrics of the daemon: a row per sample; buckets of histograms and the meanings
are for -o wide. --raw prints the node's own text.`, example: "{}\n{} --raw", run: runs.Metrics, real: Metrics,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				raw := cmd.Flags().Bool("raw", false, "print the text as the node gives it")
				return func(o *Options) error { o.Raw = *raw; return nil }
			}},
		{name: "checkpoint", short: "List the allocations that outlive a restart of the daemon", long: `List the allocations that the daemon holds, which are those that it writes to its
checkpoint and takes over when it starts again.`,
			example: "{}\n{} -o json", run: runs.Checkpoint, real: Checkpoint, flags: checkpointFlags},
		{name: "raw", short: "GET a path of the introspection server and print the answer as is", long: `GET a path of the node's introspection server and print the answer as it is, up to 8 MiB.
On a terminal what would act on it is escaped. docs/introspection.md lists the paths.`,
			example: "{} --path /v1/enis\n{} --path '/v1/plan?warmIp=5'", run: runs.Raw, real: Raw,
			flags: func(cmd *cobra.Command, _ bool) func(*Options) error {
				path := cmd.Flags().String("path", "/v1/summary", "`PATH` to read, with its query")
				_ = cmd.RegisterFlagCompletionFunc("path", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
					return Paths(), cobra.ShellCompDirectiveNoFileComp
				})
				return func(o *Options) error { o.Path = *path; return nil }
			}},
	}
}

// checkpointFlags: the file itself can only be read on the node.
func checkpointFlags(cmd *cobra.Command, local bool) func(*Options) error {
	if !local {
		return nil
	}
	cmd.Long += "\n\nWith --file the file is read instead, as root: also one that the daemon left behind."
	file := cmd.Flags().String("file", "", "read this `FILE`, without a value "+CheckpointFile)
	cmd.Flags().Lookup("file").NoOptDefVal = CheckpointFile
	return func(o *Options) error { o.File = *file; return nil }
}

// Paths are those that nodes know.
func Paths() []string {
	return []string{
		introspect.PathENIs, introspect.PathENIConfigs, introspect.PathNetworkEnv, introspect.PathIPAMEnv, introspect.PathSummary, introspect.PathConfig,
		introspect.PathPlan, introspect.PathFailures, introspect.PathEvents, introspect.PathLogs, introspect.PathSchemas,
	}
}

// command builds the command of a verb, for a node that is named or for this host.
func command(f *cli.Factory, v verb, args string) *cobra.Command {
	run := pick(v.run, v.real)
	local := args == ""
	cmd := &cobra.Command{Use: v.name + args, Short: v.short, Long: v.long, Args: cli.Args(1, 1, "NODE"), ValidArgsFunction: completion.Nodes(f)}
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
		return run(cmd.Context(), f, opts)
	}
	return cmd
}

func pick(run, real Run) Run {
	if run != nil {
		return run
	}
	return real
}

// examples puts a command line in the place of each {}.
func examples(line, text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(strings.ReplaceAll(text, "{}", line), "\n", "\n  ")
}

// write prints text as it is.
func write(f *cli.Factory, text string) error {
	if _, err := io.WriteString(f.Streams.Out, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}
