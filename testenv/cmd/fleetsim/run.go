package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cnictl/testenv/kube/fleetsim"
)

const usage = `fleetsim simulates a cluster of nodes with ipamd behind a simulated API server, on
loopback only. It prints the path of a kubeconfig and runs until it gets a signal.

Usage: fleetsim [flags]

  --nodes N            number of nodes, 1 to 5000 (10)
  --seed N             the same seed gives the same fleet (1)
  --upstream SHARE     share of nodes that run upstream, in a mix of releases
  --ipv6               an IPv6 cluster
  --churn D            mean time between two pod changes on a node (30s); -1s: none
  --node-churn D       mean time between two nodes that join or leave (default: none do)
  --sound              EC2 refuses nothing, subnets and nodes never run out, except for traits
  --latency D          latency of every stream to a node
  --TRAIT SHARE        share of nodes with a trait: slow dead refused half garbage wrong-json
                       huge endless lying hostile flapping no-daemon fargate windows
                       not-ready unix-socket; our nodes whose pool EC2 refuses to
                       grow: full-subnet throttled unauthorized
  --node NAME=TRAIT,…  additional traits of one node; may be repeated
  --kubeconfig FILE    where to write the kubeconfig (0600); default: a directory of its own
  --targets DIR        also serve every node on a Unix socket in DIR, and print the
                       value for cnictl --targets
  --for D              stop after this time

A SHARE is 30% or 0.3.

Examples:
  fleetsim --nodes 5000 --upstream 30% --dead 0.5% --latency 150ms
  KUBECONFIG=$(fleetsim --nodes 20 --for 1h & …) kubectl get nodes -w
  fleetsim --nodes 3 --targets /tmp/nodes
`

type settings struct {
	opts       fleetsim.Options
	kubeconfig string
	targets    string
	last       time.Duration
}

// share is a flag that accepts 30% or 0.3.
type share struct{ into func(float64) }

func (share) String() string { return "" }

func (s share) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("%q is not a share: want 0%% to 100%%, or 0 to 1", text)
	}
	s.into(v)
	return nil
}

func parse(args []string) (settings, error) {
	s := settings{opts: fleetsim.Options{Shares: map[fleetsim.Trait]float64{}, Named: map[string][]fleetsim.Trait{}}}
	fs := flag.NewFlagSet("fleetsim", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // main prints the error
	fs.IntVar(&s.opts.Nodes, "nodes", 10, "")
	fs.Uint64Var(&s.opts.Seed, "seed", 1, "")
	fs.BoolVar(&s.opts.IPv6, "ipv6", false, "")
	fs.BoolVar(&s.opts.Sound, "sound", false, "")
	fs.DurationVar(&s.opts.Churn, "churn", 0, "")
	fs.DurationVar(&s.opts.NodeChurn, "node-churn", 0, "")
	fs.DurationVar(&s.opts.Latency, "latency", 0, "")
	fs.StringVar(&s.kubeconfig, "kubeconfig", "", "")
	fs.StringVar(&s.targets, "targets", "", "")
	fs.DurationVar(&s.last, "for", 0, "")
	fs.Var(share{func(v float64) { s.opts.UpstreamShare = v }}, "upstream", "")
	for _, t := range fleetsim.Traits() {
		if t != fleetsim.Upstream {
			fs.Var(share{func(v float64) { s.opts.Shares[t] = v }}, string(t), "")
		}
	}
	fs.Func("node", "", func(text string) error {
		name, traits, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("want NAME=TRAIT,TRAIT")
		}
		for t := range strings.SplitSeq(traits, ",") {
			s.opts.Named[name] = append(s.opts.Named[name], fleetsim.Trait(t))
		}
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return s, err
	}
	if fs.NArg() > 0 {
		return s, fmt.Errorf("unknown argument %q (fleetsim --help)", fs.Arg(0))
	}
	return s, nil
}

// run serves the fleet until the context ends, and leaves nothing behind.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}
	s.opts.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	sim, err := fleetsim.Start(s.opts)
	if err != nil {
		return err
	}
	defer sim.Close()
	path := s.kubeconfig
	if path == "" {
		dir, err := os.MkdirTemp("", "fleetsim-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "kubeconfig")
	}
	if err := os.WriteFile(path, sim.Kubeconfig(), 0o600); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	defer func() { err = errors.Join(err, os.Remove(path)) }()
	if _, err := fmt.Fprintln(out, path); err != nil {
		return err
	}
	if s.targets != "" {
		targets, err := sim.ServeTargets(s.targets)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(out, targets); err != nil {
			return err
		}
	}
	if s.last > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.last)
		defer cancel()
	}
	<-ctx.Done()
	return nil
}
