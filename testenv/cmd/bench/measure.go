package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"cnictl/testenv/node/agent"
)

// samples holds the measurements of one contender's commands.
type samples struct {
	wall, cpu []time.Duration
	faults    []time.Duration // page faults, as plain numbers
	daemon    []time.Duration // the daemon's CPU time per command, each the mean of several in a row
	failed    []error
	took      time.Duration // of the whole phase, for rates
}

func (s *samples) add(r agent.Result) {
	s.wall = append(s.wall, r.Wall)
	s.cpu = append(s.cpu, r.CPU())
	s.faults = append(s.faults, time.Duration(r.MinFault))
}

// daemonMean returns the daemon's CPU time per command.
func (s *samples) daemonMean() time.Duration {
	var sum time.Duration
	for _, d := range s.daemon {
		sum += d
	}
	return sum / time.Duration(max(len(s.daemon), 1))
}

// note records a command's result, or its failure if the plugin failed it. Other errors end
// the bench.
func (s *samples) note(r agent.Result, err error) error {
	var f *failure
	switch {
	case errors.As(err, &f):
		s.failed = append(s.failed, err)
	case err != nil:
		return err
	default:
		s.add(r)
	}
	return nil
}

// sequential adds and deletes n pods per contender, one command at a time, with the
// contenders taking turns. The first rounds are warm-up and don't count.
func sequential(ctx context.Context, list []*contender, n int) (adds, dels map[*contender]*samples, _ error) {
	const warmUp, window = 5, 5
	pods := map[*contender][]*pod{}
	for _, c := range list {
		var err error
		if pods[c], err = c.newPods(warmUp + n); err != nil {
			return nil, nil, err
		}
	}
	phase := func(command string) (map[*contender]*samples, error) {
		out := map[*contender]*samples{}
		before := map[*contender]time.Duration{}
		for _, c := range list {
			out[c] = &samples{}
		}
		for i := range warmUp + n {
			for turn := range list {
				c := list[(turn+i)%len(list)]
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				r, err := c.run(pods[c][i], command)
				if i < warmUp && err == nil {
					continue
				}
				if err := out[c].note(r, err); err != nil {
					return nil, err
				}
			}
			if done := i + 1 - warmUp; done < 0 || done%window != 0 {
				continue
			}
			// Reading takes a process, so the daemons' CPU time is read once per window.
			for _, c := range list {
				cpu, err := c.daemonCPU()
				if err != nil {
					return nil, err
				}
				if i >= warmUp && c.daemon != 0 {
					out[c].daemon = append(out[c].daemon, (cpu-before[c])/window)
				}
				before[c] = cpu
			}
		}
		return out, nil
	}
	var err error
	if adds, err = phase("ADD"); err != nil {
		return nil, nil, err
	}
	if dels, err = phase("DEL"); err != nil {
		return nil, nil, err
	}
	for _, c := range list {
		if err := c.remove(ctx, pods[c]); err != nil {
			return nil, nil, err
		}
	}
	return adds, dels, nil
}

// parallel adds pods, width at a time, in blocks, with the contenders taking turns.
func parallel(ctx context.Context, list []*contender, blocks, perBlock, width int) (map[*contender]*samples, error) {
	out := map[*contender]*samples{}
	for _, c := range list {
		out[c] = &samples{}
	}
	for range blocks {
		for _, c := range list {
			pods, err := c.newPods(perBlock)
			if err != nil {
				return nil, err
			}
			before, err := c.daemonCPU()
			if err != nil {
				return nil, err
			}
			if err := burst(ctx, c, pods, width, out[c]); err != nil {
				return nil, err
			}
			after, err := c.daemonCPU()
			if err != nil {
				return nil, err
			}
			if c.daemon != 0 {
				out[c].daemon = append(out[c].daemon, (after-before)/time.Duration(perBlock))
			}
			// Not measured, but necessary to free the addresses.
			if err := burst(ctx, c, pods, width, nil, "DEL"); err != nil {
				return nil, err
			}
			if err := c.remove(ctx, pods); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// burst runs a command (by default ADD) for all pods, width at a time.
func burst(ctx context.Context, c *contender, pods []*pod, width int, s *samples, command ...string) error {
	verb := "ADD"
	if len(command) > 0 {
		verb = command[0]
	}
	work := make(chan *pod)
	var mu sync.Mutex // guards s and errs
	var errs []error
	var wg sync.WaitGroup
	begin := time.Now()
	for range width {
		wg.Go(func() {
			for p := range work {
				r, err := c.run(p, verb)
				mu.Lock()
				if s != nil {
					err = s.note(r, err)
				}
				if err != nil {
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, p := range pods {
		if ctx.Err() != nil {
			break
		}
		work <- p
	}
	close(work)
	wg.Wait()
	if s != nil {
		s.took += time.Since(begin)
	}
	if err := errors.Join(append(errs, ctx.Err())...); err != nil {
		return fmt.Errorf("%s of %d pods, %d at a time: %w", verb, len(pods), width, err)
	}
	return nil
}

// crowd adds pods one by one until there are many, with the contenders taking turns. It
// returns the ADDs around the tenth pod and around the last.
func crowd(ctx context.Context, list []*contender, many int) (few, full map[*contender]*samples, _ error) {
	const window = 19 // the first window is the tenth pod with nine on either side
	few, full = map[*contender]*samples{}, map[*contender]*samples{}
	pods := map[*contender][]*pod{}
	for _, c := range list {
		few[c], full[c] = &samples{}, &samples{}
		var err error
		if pods[c], err = c.newPods(many); err != nil {
			return nil, nil, err
		}
	}
	for i := range many {
		for turn := range list {
			c := list[(turn+i)%len(list)]
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			r, err := c.run(pods[c][i], "ADD")
			into := &samples{}
			switch {
			case i < window:
				into = few[c]
			case i >= many-window:
				into = full[c]
			}
			if err := into.note(r, err); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, c := range list {
		if err := burst(ctx, c, pods[c], 4, nil, "DEL"); err != nil {
			return nil, nil, err
		}
		if err := c.remove(ctx, pods[c]); err != nil {
			return nil, nil, err
		}
	}
	return few, full, nil
}

// memory returns the peak memory of each contender's ADD in bytes: the minimum over several pods.
func memory(ctx context.Context, list []*contender, bin string) (map[*contender]int64, error) {
	out := map[*contender]int64{}
	for _, c := range list {
		pods, err := c.newPods(5)
		if err != nil {
			return nil, err
		}
		c.peak = filepath.Join(bin, "peak")
		for _, p := range pods {
			r, err := c.run(p, "ADD")
			if err != nil {
				return nil, err
			}
			if out[c] == 0 || r.MaxRSS < out[c] {
				out[c] = r.MaxRSS
			}
		}
		c.peak = ""
		if err := burst(ctx, c, pods, 1, nil, "DEL"); err != nil {
			return nil, err
		}
		if err := c.remove(ctx, pods); err != nil {
			return nil, err
		}
	}
	return out, nil
}
