package about

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/human"
)

// VersionOptions are the arguments and flags of version.
type VersionOptions struct {
	Client bool // only the tool's own version
}

// NewVersion builds the command.
func NewVersion(f *cli.Factory) *cobra.Command {
	opts := &VersionOptions{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this tool and of the nodes' daemons",
		Long: `Print the version of this tool and the versions of aws-node with the number of nodes that run
each. In a cluster these are the image tags, and no node is contacted; with --targets or on a
node the daemons are queried.`,
		Example: "  {{.Command}} version\n  {{.Command}} version --client\n  {{.Command}} version -o json",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runVersion(cmd.Context(), f, opts) },
	}
	cmd.Flags().BoolVar(&opts.Client, "client", false, "print only the version of this tool")
	return cmd
}

// runVersion prints the versions. It prints the tool's own even if the others are unavailable.
func runVersion(ctx context.Context, f *cli.Factory, opts *VersionOptions) error {
	if err := output.Refuse(f, output.CSV, output.Name); err != nil {
		return err
	}
	doc := document.Versions{
		APIVersion: introspect.APIVersion, Kind: document.KindVersion,
		Version: f.Version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Errors: []document.NodeError{},
	}
	var failed error
	if !opts.Client && access.HasNodes(ctx, f) {
		failed = daemons(ctx, f, &doc)
	}
	doc.SampledAt = f.Now().UTC()
	if err := printVersions(f, doc); err != nil {
		return err
	}
	return failed
}

func printVersions(f *cli.Factory, doc document.Versions) error {
	if output.Structured(f) {
		return output.PrintDocument(f, doc, false)
	}
	lines := []string{"cnictl " + doc.Version + " (" + doc.GoVersion + ", " + doc.Platform + ")"}
	for _, d := range doc.Daemons {
		nodes := "1 node"
		if d.Nodes != 1 {
			nodes = fmt.Sprintf("%d nodes", d.Nodes)
		}
		version := d.Version
		if version == "" {
			version = "of an unknown version"
		}
		lines = append(lines, "aws-node "+version+" on "+nodes)
	}
	return output.PrintText(f, lines...)
}

// daemons counts the daemons by version.
func daemons(ctx context.Context, f *cli.Factory, doc *document.Versions) error {
	targets, err := access.ClusterTargets(ctx, f)
	if err != nil {
		return lacking(doc, err)
	}
	count := map[string]int{}
	for _, t := range targets {
		if t.Object != nil && t.Object.Daemon != nil {
			count[t.Object.Daemon.Tag()]++
		}
	}
	if targets == nil {
		nodes, err := access.Fleet(ctx, f)
		if err != nil {
			return lacking(doc, err)
		}
		defer nodes.Close()
		list, interrupted := sweep.All(ctx, f, nodes, fleet.Query{})
		for _, n := range list.Items {
			if n.Summary != nil || n.Object != nil && n.Object.Daemon != nil {
				count[n.DaemonVersion()]++
			}
		}
		doc.Daemons, doc.Partial, doc.Errors = ranked(count), list.Partial, list.Errors
		return sweep.Verdict(f, list, interrupted)
	}
	doc.Daemons = ranked(count)
	return nil
}

// lacking records in the document that the daemons could not be listed.
func lacking(doc *document.Versions, err error) error {
	why := sweep.ErrorOf("kubernetes", err)
	doc.Partial, doc.Errors = true, append(doc.Errors, why)
	return err
}

// ranked sorts versions by their number of nodes, highest first.
func ranked(count map[string]int) []document.DaemonVersion {
	out := make([]document.DaemonVersion, 0, len(count))
	for version, nodes := range count {
		out = append(out, document.DaemonVersion{Version: version, Nodes: nodes})
	}
	slices.SortFunc(out, func(a, b document.DaemonVersion) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), human.Natural(b.Version, a.Version))
	})
	return out
}
