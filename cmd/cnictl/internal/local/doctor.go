package local

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/doctor"
	"cnictl/doctor/collect/node"
	"cnictl/doctor/evidence"
)

// betweenReadings is the interval between the two readings unless --interval is given.
const betweenReadings = 15 * time.Second

// doctorOptions are what local doctor was asked for.
type doctorOptions struct {
	File string // - is standard output
	Once bool
}

func newDoctor(f *cli.Factory) *cobra.Command {
	opts := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor --save-evidence FILE",
		Short: "Write down the state of this node, as evidence for the doctor",
		Long: `Read everything on this node that says how its pod network is: the daemon's documents,
metrics, logs and checkpoint, the kernel's links, rules, routes, firewall and settings, the
host's software, files and resources, and instance metadata. Write it to a file (mode
0600), or with - to standard output.

There are two readings, 15 seconds apart unless --interval is given: what is wrong only for
a moment is not in both. With --once there is one. Run it as root: other users cannot read
everything. What could not be read is in the file with the reason. Sandbox ids and
credentials are removed; names, addresses and ids of AWS resources are not.

Nothing is changed. The metadata service is asked, EC2 and the API server are not.`,
		Example: "  {{.Command}} local doctor --save-evidence node.yaml\n  {{.Command}} local doctor --once --save-evidence -",
		Args:    cli.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.File == "" {
				return &cli.Error{Code: cli.ExitUsage, What: "local doctor needs --save-evidence", Why: "it writes what it reads, and nothing else", Do: f.Name + " local doctor --save-evidence FILE"}
			}
			return diagnose(cmd.Context(), f, opts)
		},
	}
	cmd.Flags().StringVar(&opts.File, "save-evidence", "", "write what was read to this `file` (- is standard output), for doctor --evidence")
	cmd.Flags().BoolVar(&opts.Once, "once", false, "read once only")
	return cmd
}

// diagnose takes the readings and writes them.
func diagnose(ctx context.Context, f *cli.Factory, opts *doctorOptions) error {
	interval := f.Globals.Interval
	if f.SourceOf("interval") == cli.FromDefault {
		interval = betweenReadings
	}
	ev, err := readings(ctx, f, opts.Once, interval)
	if err != nil {
		return err
	}
	return doctor.Save(f, opts.File, ev)
}

// readings reads the node once or twice.
func readings(ctx context.Context, f *cli.Factory, once bool, interval time.Duration) (*evidence.Evidence, error) {
	target, _ := f.LocalTarget(ctx)
	metadata, _ := f.Env("AWS_EC2_METADATA_SERVICE_ENDPOINT")
	o := node.Options{Address: target.Address, Metadata: metadata, Now: f.Now}
	n := evidence.Node{First: node.Read(ctx, o)}
	if !once {
		ticks, stop := f.Tick(interval)
		defer stop()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticks:
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
