package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/testenv/cmd/internal/figure"
	"cnictl/testenv/fakeaws"
)

// The load on a fresh node.
const (
	manyPods = 150
	fewPods  = 40
	width    = 20 // ADDs in parallel
)

// scenario describes pods that start on a fresh node.
type scenario struct {
	name     string
	pods     int
	options  fakeaws.Options
	prefixes bool
	shown    bool // the API server shows the pods bound to the node before their ADDs
	fault    fakeaws.FaultFunc
}

// outcome is the result of one run of a scenario.
type outcome struct {
	launched
	begin time.Time      // first ADD
	calls []fakeaws.Call // from the start of the daemon until all pods run
	imds  []string       // paths of the metadata requests during the ADDs
}

func (s *session) scale(ctx context.Context) error {
	for _, v := range []struct {
		scenario
		upstream time.Duration
		failed   figure.Number
		calls    figure.Number
		target   target
	}{
		{scenario{name: "150 pods, latency 0"}, 22900 * time.Millisecond, figure.Of(330), figure.Of(upstreamCalls), scaleAtOnce},
		{scenario{name: "150 pods, realistic", options: realistic()}, 34400 * time.Millisecond, figure.Of(520), figure.Of(upstreamCalls), scaleRealistic},
		{scenario{name: "150 pods, prefixes, latency 0", prefixes: true}, 0, figure.Number{}, figure.Number{}, target{}},
		{scenario{name: "150 pods, prefixes, realistic", prefixes: true, options: realistic()}, 47 * time.Second, figure.Of(760), figure.Number{}, scalePrefixes},
	} {
		v.pods = manyPods
		all, err := s.repeat(ctx, v.scenario)
		if err != nil {
			return err
		}
		took := s.table.add(v.name, "s", sample(all, wall)...)
		took.bound = v.growth().bound(v.options.Latency)
		if v.upstream > 0 {
			took.against(seconds(v.upstream), v.target)
		}
		s.table.add(v.name+": failed ADDs", "", sample(all, failures)...).none().upstream = v.failed
		calls := s.table.add(v.name+": EC2 calls", "", sample(all, requests)...)
		calls.bound = v.growth().callBound()
		if v.calls.Known {
			calls.against(v.calls, scaleCalls)
		}
		s.table.add(v.name+": metadata requests per ADD", "", sample(all, metadata)...).askedSeldom()
	}
	return nil
}

func realistic() fakeaws.Options { return fakeaws.Options{Latency: fakeaws.RealisticLatency()} }

// bound measures the same growth when the API server shows the pods as soon as they are
// bound, some time before the runtime starts them.
func (s *session) bound(ctx context.Context) error {
	v := scenario{name: "150 pods, bound beforehand, realistic", pods: manyPods, options: realistic(), shown: true}
	all, err := s.repeat(ctx, v)
	if err != nil {
		return err
	}
	took := s.table.add(v.name, "s", sample(all, wall)...).against(seconds(34400*time.Millisecond), scaleRealistic)
	took.bound = v.growth().bound(v.options.Latency)
	s.table.add(v.name+": failed ADDs", "", sample(all, failures)...).none().upstream = figure.Of(520)
	calls := s.table.add(v.name+": EC2 calls", "", sample(all, requests)...).against(figure.Of(upstreamCalls), scaleCalls)
	calls.bound = v.growth().callBound()
	return nil
}

func (v scenario) growth() growth {
	found, _ := limits.Lookup(instanceType) // a constant of this package
	return growth{pods: v.pods, prefixes: v.prefixes, of: found}
}

// Figures of an outcome.
func wall(o outcome) float64     { return o.took.Seconds() }
func failures(o outcome) float64 { return float64(len(o.failed)) }
func requests(o outcome) float64 { return float64(len(o.calls)) }
func metadata(o outcome) float64 { return float64(len(o.imds)) / float64(len(o.pods)) }

func sample(all []outcome, f func(outcome) float64) (out []float64) {
	for _, o := range all {
		out = append(out, f(o))
	}
	return out
}

// repeat runs a scenario several times and records the calls of the median run.
func (s *session) repeat(ctx context.Context, v scenario) ([]outcome, error) {
	var all []outcome
	for range s.runs {
		o, err := s.once(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		s.say("  %s: %.2f s, %d failed ADDs, %d EC2 calls", v.name, o.took.Seconds(), len(o.failed), len(o.calls))
		for _, f := range o.failed[:min(len(o.failed), 3)] {
			s.say("    failed: %v", f)
		}
		all = append(all, o)
	}
	sorted := slices.SortedFunc(slices.Values(all), func(a, b outcome) int { return int(a.took - b.took) })
	m := sorted[len(sorted)/2]
	s.table.note("%s: %s.", v.name, byAction(m.calls))
	if s.calls {
		s.table.note("EC2 requests, from the first ADD (all pods run at %+.3f s):\n%s", m.took.Seconds(), timeline(m.calls, m.begin))
		if len(m.imds) > 0 {
			s.table.note("Metadata requests: %s.", strings.Join(m.imds, ", "))
		}
	}
	return all, nil
}

// once runs a scenario on a separate node.
func (s *session) once(ctx context.Context, v scenario) (_ outcome, err error) {
	t, err := s.newSite(ctx, instanceType, v.options)
	if err != nil {
		return outcome{}, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	t.world.SetFaults(v.fault)
	env := map[string]string{}
	if v.shown {
		if env, err = s.join(ctx, t, maxPods); err != nil {
			return outcome{}, err
		}
	}
	if v.prefixes {
		env["ENABLE_PREFIX_DELEGATION"] = "true"
	}
	if _, err := t.serve(ctx, env); err != nil {
		return outcome{}, err
	}
	before := len(t.world.IMDSCalls())
	o := outcome{begin: time.Now()}
	k := kubelet{node: t.node, namespace: "default", atATime: width}
	if v.shown {
		o.launched, err = s.launchBound(ctx, t, k, v.pods)
	} else {
		o.launched, err = k.launch(ctx, queued(v.pods))
	}
	o.calls = t.world.Calls()
	for _, c := range t.world.IMDSCalls()[before:] {
		o.imds = append(o.imds, c.Path)
	}
	return o, err
}

// launchBound binds pods in the API server as fast as it accepts them, and starts each as
// soon as it is bound and a slot is free.
func (s *session) launchBound(ctx context.Context, t *site, k kubelet, n int) (launched, error) {
	k.namespace = t.node.Name
	if err := s.api.namespace(ctx, k.namespace); err != nil {
		return launched{}, err
	}
	names := make(chan string, n)
	bound := make(chan error, 1)
	go func() { // ends when all are bound or one cannot be
		defer close(names)
		bound <- each(ctx, n, func(ctx context.Context, i int) error {
			err := s.api.pod(ctx, k.namespace, podName(i), t.node.Name)
			if err == nil {
				names <- podName(i)
			}
			return err
		})
	}()
	out, err := k.launch(ctx, names)
	return out, errors.Join(err, <-bound)
}
