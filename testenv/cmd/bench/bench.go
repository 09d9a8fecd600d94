package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"

	"golang.org/x/sys/unix"
)

// bench runs every phase and prints it as soon as it is done.
func bench(ctx context.Context, o options, w io.Writer) (err error) {
	l, err := newLab(ctx, o.bin)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	scale := func(n int) int {
		if o.quick {
			return max(n/10, 1)
		}
		return n
	}
	rounds := scale(o.rounds)
	r := report{w}
	fmt.Fprintf(w, "%d CPUs, Linux %s, %s\n", runtime.NumCPU(), release(), runtime.Version())

	costs, err := starts(l.floor.node, o.bin, scale(50))
	if err != nil {
		return err
	}
	r.starts(costs)

	adds, dels, err := sequential(ctx, l.all(), rounds)
	if err != nil {
		return err
	}
	r.sequential(l, adds, dels, rounds)

	blocks, per := 4, scale(50)
	ten, err := parallel(ctx, l.all(), blocks, per, 10)
	if err != nil {
		return err
	}
	r.parallel(l, fmt.Sprintf("%d pods, 10 at a time (aim 0.75 of the floor)", blocks*per), ten)

	burst := scale(400)
	thirty, err := parallel(ctx, l.all(), 1, burst, 30)
	if err != nil {
		return err
	}
	r.parallel(l, fmt.Sprintf("%d pods, 30 at a time", burst), thirty)

	many := scale(500)
	if many < 80 {
		many = 80 // room for both windows
	}
	few, full, err := crowd(ctx, []*contender{l.floor, l.ours}, many)
	if err != nil {
		return err
	}
	r.crowd(l, few, full, many)
	for _, m := range []map[*contender]*samples{adds, dels, ten, thirty, few, full} {
		if s := m[l.ours]; len(s.failed) > 0 {
			return fmt.Errorf("%d commands of aws-cni failed, first: %w", len(s.failed), s.failed[0])
		}
	}
	return nil
}

func release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "?"
	}
	return unix.ByteSliceToString(u.Release[:])
}
