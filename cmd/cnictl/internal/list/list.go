// Package list holds the skeleton of the commands that list rows of nodes, and nodes, top, pods, enis,
// ips and trunks. A command is its columns and a function that makes rows of one reading of the nodes;
// [Command] does what they have in common: it reads or follows the nodes, prints the chosen rows
// in the form asked for, and judges whether everything could be read.
package list

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/access"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/sweep"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/daemon/fleet/store"
)

// Command is a command that lists rows of type T. Either Read or Query says what it reads; only commands
// without --watch have no Follow.
type Command[T any] struct {
	*output.List[T]
	Query fleet.Query // what it reads of each node

	// Read opens and reads what the arguments name; nil: the nodes of these names.
	Read func(ctx context.Context, f *cli.Factory, args []string) (*Reading, error)
	// Rows makes the rows of one reading, to which it adds what it reads itself.
	Rows func(ctx context.Context, f *cli.Factory, r *Reading) ([]T, error)
	// Document is what structured forms print of it.
	Document func(r *Reading, chosen []T) any
	// Follow lists the rows of what the arguments name as they change, until ctx ends.
	Follow func(ctx context.Context, f *cli.Factory, args []string) error
}

// Reading is one reading of the nodes.
type Reading struct {
	document.NodeIPAMList
	Names       []string     // the arguments; none: all
	Nodes       *fleet.Fleet // nil if none were opened
	Took        time.Duration
	Interrupted bool                 // the user gave up
	Failed      []document.NodeError // what else could not be read
	Remark      func()               // says what the rows do not show; nil if nothing
	Judge       func() error         // the error of a command that printed it; nil: Verdict says it
}

// Read reads the nodes that open opens. The caller closes the reading.
func Read(ctx context.Context, f *cli.Factory, open access.Opener, q fleet.Query) (*Reading, error) {
	nodes, err := open(ctx, f)
	if err != nil {
		return nil, err
	}
	r, start := &Reading{Nodes: nodes}, f.Now()
	r.NodeIPAMList, r.Interrupted = sweep.All(ctx, f, nodes, q)
	r.Took = f.Now().Sub(start)
	return r, nil
}

// Close closes the nodes.
func (r *Reading) Close() {
	if r.Nodes != nil {
		r.Nodes.Close()
	}
}

// View is the view of the nodes that were read.
func (r *Reading) View() *store.View {
	s := store.New()
	for _, n := range r.Items {
		s.PutAt(n, r.SampledAt)
	}
	return s.View()
}

// Verdict is the error of a command that printed a reading; nil if all of it could be read.
func (r *Reading) Verdict(f *cli.Factory) error {
	if r.Judge != nil {
		return r.Judge()
	}
	err := sweep.Verdict(f, r.NodeIPAMList, r.Interrupted)
	if err == nil && len(r.Failed) > 0 && !f.Globals.AllowPartial {
		return cli.Exit(cli.ExitPartial)
	}
	return err
}

// Build completes the command.
func (c Command[T]) Build(f *cli.Factory, cmd *cobra.Command) *cobra.Command {
	return c.Command(f, cmd, func(ctx context.Context, args []string) error { return c.Run(ctx, f, args) })
}

// Run lists the rows once, or follows them until ctx ends.
func (c Command[T]) Run(ctx context.Context, f *cli.Factory, args []string) error {
	if c.Watching() {
		return c.Follow(ctx, f, args)
	}
	r, err := c.read(ctx, f, args)
	if err != nil {
		return err
	}
	defer r.Close()
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
	return r.Verdict(f)
}

func (c Command[T]) read(ctx context.Context, f *cli.Factory, args []string) (r *Reading, err error) {
	if c.Read != nil {
		return c.Read(ctx, f, args)
	}
	named := func(ctx context.Context, f *cli.Factory) (*fleet.Fleet, error) { return access.FleetOf(ctx, f, args) }
	if r, err = Read(ctx, f, named, c.Query); err == nil {
		r.Names = args
	}
	return r, err
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
