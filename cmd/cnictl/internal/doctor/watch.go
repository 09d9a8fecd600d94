package doctor

import (
	"context"
	"reflect"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/follow"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/daemon/fleet/document"
	"cnictl/doctor/evidence"
)

// follow examines the nodes repeatedly until the user ends it, comparing each reading
// with the previous one. On a terminal the report is drawn in place, elsewhere printed
// when it changes.
func (o *Options) follow(ctx context.Context, f *cli.Factory, read func(context.Context) (*evidence.Evidence, error)) error {
	screen := output.NewScreen(f)
	var before *evidence.Evidence
	var last [][]string
	return follow.Every(ctx, f, interval(f), func(ctx context.Context, _ time.Duration) (bool, error) {
		ev, err := read(ctx)
		switch {
		case ctx.Err() != nil:
			return false, nil // interrupted by the user
		case err != nil && before == nil:
			return false, err
		case err != nil:
			f.Warn("the last reading failed: %v", err)
			return false, nil
		}
		joined := withPrevious(before, ev)
		before = ev
		r := o.diagnose(f, joined)
		news := changes(&r)
		switch {
		case f.Streams.OutTTY && (f.Globals.Output == "table" || output.Wide(f)):
			err = screen.Draw(o.page(f, &r))
		case last != nil && reflect.DeepEqual(news, last):
		case output.Structured(f):
			err = output.PrintDocument(f, r, true)
		default:
			err = o.print(f, &r)
		}
		last = news
		return false, err
	}, nil)
}

// changes returns the parts of a report whose change is news: neither times nor numbers.
func changes(r *document.DoctorReport) (out [][]string) {
	for _, f := range r.Findings {
		out = append(out, append([]string{f.Code, f.Severity, f.Confidence}, f.Nodes...))
	}
	return append(out, r.Undecided)
}

// withPrevious returns a reading that includes the previous reading of each node.
func withPrevious(before, now *evidence.Evidence) *evidence.Evidence {
	if before == nil {
		return now
	}
	first := map[string]*evidence.Reading{}
	for _, n := range before.Nodes {
		first[n.Name] = n.Last()
	}
	out := *now
	out.At, out.Interval, out.Nodes = before.At, now.At.Sub(before.At), nil
	for _, n := range now.Nodes {
		if r := first[n.Name]; r != nil {
			n.First, n.Second = r, n.Last()
		}
		out.Nodes = append(out.Nodes, n)
	}
	return &out
}
