package doctor

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/doctor/collect"
	"cnictl/doctor/collect/node"
	"cnictl/doctor/evidence"
)

// NewLocal builds local doctor.
func NewLocal(f *cli.Factory) *cobra.Command {
	opts := &Options{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find out why pods on this node get no address or no network",
		Long: `Read everything on this node that shows the state of its pod network, and find out what is wrong:
the daemon's documents, metrics, logs and checkpoint, the kernel's links, rules, routes,
firewall and settings, the host's software, files and resources, and instance metadata.

There are two readings, 15 seconds apart unless --interval is given: transient problems do not
appear in both. --once takes a single reading. Run it as root: other users cannot read everything.
--save-evidence writes what was read to a file, for doctor --evidence. Sandbox IDs and credentials
are removed; names, addresses and IDs of AWS resources are not. What hangs is left out: a source is
given up when nothing of it has been read and none of its programs has worked for 3 seconds, or
--node-timeout, and after ten times that in any case. On a busy node a reading takes longer.

Nothing is changed. Instance metadata is read; of EC2 and the API server, only whether they
accept a connection from the node is checked.`,
		Example: "  {{.Command}} local doctor\n  {{.Command}} local doctor --once --save-evidence -",
		Args:    cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.check(f); err != nil {
				return err
			}
			ev, err := readings(cmd.Context(), f, opts.Once, interval(f))
			if err != nil {
				return err
			}
			return Examine(f, opts, ev)
		},
	}
	opts.register(cmd)
	cmd.Flags().BoolVar(&opts.Once, "once", false, "read once only")
	return cmd
}

// interval returns the time between two readings.
func interval(f *cli.Factory) time.Duration {
	if f.SourceOf("interval") == cli.FromDefault {
		return collect.DefaultInterval
	}
	return f.Globals.Interval
}

// sourceTimeout returns the limit of one source: --node-timeout if given, since a slow
// network or control plane slows each source; else 0, the default.
func sourceTimeout(f *cli.Factory) time.Duration {
	if f.SourceOf("node-timeout") == cli.FromDefault {
		return 0
	}
	return f.Globals.NodeTimeout
}

// readings reads the node once or twice.
func readings(ctx context.Context, f *cli.Factory, once bool, interval time.Duration) (*evidence.Evidence, error) {
	target, _ := f.LocalTarget(ctx)
	metadata, _ := f.Env("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	o := node.Options{Address: target.Address, Metadata: metadata, Now: f.Now, Timeout: sourceTimeout(f)}
	n := evidence.Node{First: node.Read(ctx, o)}
	if !once {
		if err := wait(ctx, f, interval); err != nil {
			return nil, err
		}
		o.First = n.First
		n.Second = node.Read(ctx, o)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n.Name = n.Last().Summary.Content.Node; n.Name == "" {
		n.Name = n.Last().ContainerEnv.Content["aws-node"]["MY_NODE_NAME"]
	}
	if n.Name == "" {
		n.Name = target.Name
	}
	ev := &evidence.Evidence{At: n.First.At, Mode: evidence.ModeNode, Scope: evidence.Scope{Node: n.Name}, Nodes: []evidence.Node{n}}
	if n.Second != nil {
		ev.Interval = n.Second.At.Sub(n.First.At)
	}
	return ev, nil
}

// wait waits for the second reading, and says on a terminal how long it takes.
func wait(ctx context.Context, f *cli.Factory, interval time.Duration) error {
	over, stop := f.Tick(interval)
	defer stop()
	var second <-chan time.Time
	show, erase := showProgress(f)
	if show != nil {
		defer erase()
		var stop func()
		second, stop = f.Tick(time.Second)
		defer stop()
	}
	for end := f.Now().Add(interval); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return nil
		case <-second:
			show(0, 0, collect.SecondIn(end.Sub(f.Now())))
		}
	}
}
