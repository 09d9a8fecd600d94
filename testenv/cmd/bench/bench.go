package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"cnictl/testenv/cmd/internal/frame"
)

var allPhases = []string{"start", "sequential", "ten", "thirty", "crowd", "connections", "flood", "spoofing"}

// session is one run of the bench.
type session struct {
	options
	*lab
	report
	ours []*samples // all results of aws-cni with its daemon
}

// bench runs the phases and prints each as soon as it is done.
func bench(ctx context.Context, o options, w io.Writer) (err error) {
	l, err := newLab(ctx, o.bin, o.rounds)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	r := &session{options: o, lab: l, report: report{w}}
	fmt.Fprintln(w, frame.Machine())
	for i, phase := range []func(context.Context) error{r.start, r.sequential, r.ten, r.thirty, r.crowd, r.connections, r.flood, r.spoofing} {
		if len(o.phases) > 0 && !slices.Contains(o.phases, allPhases[i]) {
			continue
		}
		if err := phase(ctx); err != nil {
			return err
		}
	}
	for _, s := range r.ours {
		if len(s.failed) > 0 {
			return fmt.Errorf("%d commands of aws-cni failed, first: %w", len(s.failed), s.failed[0])
		}
	}
	return nil
}

func (r *session) scale(n int) int {
	if r.quick {
		return max(n/10, 1)
	}
	return n
}

func (r *session) keep(m map[*contender]*samples) {
	for _, c := range []*contender{r.lab.ours, r.deployed, r.ours6} {
		if s := m[c]; s != nil {
			r.ours = append(r.ours, s)
		}
	}
}

func (r *session) start(context.Context) error {
	costs, err := starts(r.floor.node, r.bin, r.scale(50))
	if err == nil {
		r.starts(costs)
	}
	return err
}

func (r *session) sequential(ctx context.Context) error {
	n := r.scale(r.rounds)
	adds, dels, err := sequential(ctx, r.sequence(), n)
	if err != nil {
		return err
	}
	r.report.sequential(r.lab, adds, dels, n)
	r.keep(adds)
	r.keep(dels)
	held, err := memory(ctx, r.sequence(), r.bin)
	if err == nil {
		r.memory(r.lab, held)
	}
	return err
}

func (r *session) ten(ctx context.Context) error {
	const blocks, width = 4, 10
	per := r.scale(50)
	m, err := parallel(ctx, r.all(), blocks, per, width)
	if err != nil {
		return err
	}
	r.parallel(r.lab, fmt.Sprintf("%d pods, %d at a time (aims: ADD/s 0.75 of the floor, no failed ADD)", blocks*per, width), m)
	r.keep(m)
	return nil
}

func (r *session) thirty(ctx context.Context) error {
	const width = 30
	n := r.scale(400)
	m, err := parallel(ctx, r.all(), 1, n, width)
	if err != nil {
		return err
	}
	r.parallel(r.lab, fmt.Sprintf("%d pods, %d at a time (aims: p99 1.5 of the floor, no failed ADD)", n, width), m)
	r.keep(m)
	return nil
}

func (r *session) crowd(ctx context.Context) error {
	many := max(r.scale(500), 80) // room for both windows
	few, full, err := crowd(ctx, []*contender{r.floor, r.lab.ours}, many)
	if err != nil {
		return err
	}
	r.report.crowd(r.lab, few, full, many)
	r.keep(few)
	r.keep(full)
	return nil
}
