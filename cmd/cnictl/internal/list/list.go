// Package list implements the commands that list rows of nodes: nodes, top, pods, enis, ips and
// trunks. A command is its columns and a function that makes rows of one reading of the nodes;
// [Command] does what they have in common: it reads or follows the nodes, prints the chosen rows
// in the form asked for, and judges whether everything could be read.
package list

import (
	"context"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
)

// Command is a command that lists rows of type T. All is required.
type Command[T any] struct {
	*output.List[T]
	Query fleet.Query // what it reads of each node

	// Rows makes the rows of one reading, to which it adds what it reads itself.
	Rows func(ctx context.Context, f *cli.Factory, r *Reading) ([]T, error)
	// Document is what structured forms print of it.
	Document func(r *Reading, chosen []T) any
	// Follow lists the rows of the named nodes as they change, until ctx ends.
	Follow func(ctx context.Context, f *cli.Factory, names []string) error
}

// Reading is one reading of the nodes.
type Reading struct {
	document.NodeIPAMList
	Names       []string // of nodes as asked for; none: all
	Nodes       *fleet.Fleet
	Interrupted bool                 // the user gave up
	Failed      []document.NodeError // what else could not be read
	Remark      func()               // says what the rows do not show; nil if nothing
}

// read reads the nodes. The caller closes Nodes.
func read(ctx context.Context, f *cli.Factory, names []string, q fleet.Query) (*Reading, error) {
	nodes, err := access.FleetOf(ctx, f, names)
	if err != nil {
		return nil, err
	}
	r := &Reading{Names: names, Nodes: nodes}
	r.NodeIPAMList, r.Interrupted = sweep.All(ctx, f, nodes, q)
	return r, nil
}

// verdict is the error of a command that printed a reading; nil if all of it could be read.
func (r *Reading) verdict(f *cli.Factory) error {
	err := sweep.Verdict(f, r.NodeIPAMList, r.Interrupted)
	if err == nil && len(r.Failed) > 0 && !f.Globals.AllowPartial {
		return cli.Exit(cli.ExitPartial)
	}
	return err
}

// build completes the command: arguments are names of nodes.
func (c Command[T]) build(f *cli.Factory, cmd *cobra.Command) *cobra.Command {
	return c.Command(f, cmd, func(ctx context.Context, names []string) error { return c.run(ctx, f, names) })
}

func (c Command[T]) run(ctx context.Context, f *cli.Factory, names []string) error {
	if c.Watching() {
		return c.Follow(ctx, f, names)
	}
	r, err := read(ctx, f, names, c.Query)
	if err != nil {
		return err
	}
	defer r.Nodes.Close()
	rows, err := c.Rows(ctx, f, r)
	if err != nil {
		return err
	}
	r.Partial, r.Errors = r.Partial || len(r.Failed) > 0, append(r.Errors, r.Failed...)
	if err := c.Print(f, rows, func(chosen []T) any { return c.Document(r, chosen) }); err != nil {
		return err
	}
	if r.Remark != nil {
		r.Remark()
	}
	return r.verdict(f)
}

// ofNodes is a command whose rows are parts of single nodes.
func ofNodes[T any](l *output.List[T], rows func([]document.NodeIPAM) []T, doc func(r *Reading, chosen []T) any) Command[T] {
	return Command[T]{
		List: l, Query: fleet.Query{ENIs: true}, Document: doc,
		Rows: func(_ context.Context, _ *cli.Factory, r *Reading) ([]T, error) { return rows(r.Items), nil },
		Follow: func(ctx context.Context, f *cli.Factory, names []string) error {
			return follow.Rows(ctx, f, names, l, rows)
		},
	}
}
