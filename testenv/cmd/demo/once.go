package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cnictl/testenv/aws/fakeaws"
	"cnictl/testenv/network/vpc"
	"cnictl/testenv/node"
)

const cnictlBinary = "cnictl"

const (
	roundLimit = 3 * time.Minute        // the whole round
	patience   = 5 * time.Second        // for an answer that must arrive
	denial     = 300 * time.Millisecond // for an answer that must not
)

// podsPerNode spreads pods over at least two ENIs on worker-1 and worker-2.
var podsPerNode = map[string]int{"worker-1": 8, "worker-2": 12, "worker-3": 6}

// round is the state of one --once run.
type round struct {
	*report
	lab  *lab
	pods map[*labNode][]*node.Pod
}

// once does one round. Its error says that a step failed; the steps were already printed.
func once(ctx context.Context, o options, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, roundLimit)
	defer cancel()
	l, err := newLab(pace{linkDelay: 50 * time.Millisecond})
	if err != nil {
		return err
	}
	r := &round{report: &report{out: os.Stdout, begin: time.Now()}, lab: l, pods: map[*labNode][]*node.Pod{}}
	if err := r.bootAll(ctx, o.bin, dir); err != nil {
		return errors.Join(err, l.close())
	}
	r.addAll()
	r.pingAll(ctx)
	r.outside(ctx)
	r.status(ctx, o.bin)
	r.deleteAll()
	left := r.leftovers(ctx)

	steps, failed := r.counts()
	fmt.Printf("\nsteps: %d, failed: %d\n", steps, failed)
	for _, item := range left {
		fmt.Println("left:", item)
	}
	fmt.Printf("leftovers: %d\n", len(left))
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	case failed > 0 || len(left) > 0:
		return fmt.Errorf("%d of %d steps failed, %d leftovers", failed, steps, len(left))
	}
	return nil
}

func (r *round) bootAll(ctx context.Context, bin, dir string) error {
	for _, w := range workers {
		n, err := r.lab.boot(ctx, w, bin, dir)
		if err != nil {
			return err
		}
		r.step("boot", nil, "%s  %s, %s, %s, link %s", n.Name, n.instanceType, n.mode, n.Primary.PrimaryIP, n.Link)
	}
	var wg sync.WaitGroup
	errs := make([]error, len(r.lab.nodes))
	for i, n := range r.lab.nodes {
		wg.Go(func() {
			begin := time.Now()
			errs[i] = n.serve(ctx)
			r.step("daemon", errs[i], "%s  serves after %d ms", n.Name, time.Since(begin).Milliseconds())
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// addAll adds the pods of all nodes, four at a time on each.
func (r *round) addAll() {
	r.eachPod(func(n *labNode, i int) *node.Pod {
		name := fmt.Sprintf("web-%d", i)
		p, err := n.AddPod(node.PodSpec{Namespace: "default", Name: name})
		if err == nil {
			e, where := r.lab.eniOf(p.IP)
			if e.Attachment.InstanceID != n.InstanceID {
				err = fmt.Errorf("%s belongs to %s", p.IP, where)
			}
			r.step("add", err, "%s  %s/%s  %s of %s, %.1f ms", n.Name, p.Namespace, p.Name, p.IP, where, ms(p.Add.Wall))
			return p
		}
		r.step("add", err, "%s  default/%s", n.Name, name)
		return nil
	})
}

// eachPod creates the pods of every node with add, which may return nil.
func (r *round) eachPod(add func(n *labNode, i int) *node.Pod) {
	var wg sync.WaitGroup
	var mu sync.Mutex // guards r.pods
	for _, n := range r.lab.nodes {
		slots := make(chan struct{}, 4)
		for i := range podsPerNode[n.Name] {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if p := add(n, i); p != nil {
					mu.Lock()
					defer mu.Unlock()
					r.pods[n] = append(r.pods[n], p)
				}
			})
		}
	}
	wg.Wait()
	for _, pods := range r.pods {
		slices.SortFunc(pods, func(a, b *node.Pod) int { return a.IP.Compare(b.IP) })
	}
}

// pingAll pings along every kind of path that pods have.
func (r *round) pingAll(ctx context.Context) {
	for i, n := range r.lab.nodes {
		if ctx.Err() != nil {
			return
		}
		next := r.lab.nodes[(i+1)%len(r.lab.nodes)]
		first, second := r.byENI(n)
		for _, p := range []*node.Pod{first, second} {
			if p == nil {
				continue
			}
			r.ping(p, n.Primary.PrimaryIP, "pod to its node")
			r.ping(p, next.Primary.PrimaryIP, "pod to another node")
			r.step("ping", n.Ping(p.IP, patience), "%s → %s  node to its pod", n.Primary.PrimaryIP, p.IP)
			if far, far2 := r.byENI(next); far != nil {
				r.ping(p, far.IP, "pod to pod on another node")
				if far2 != nil {
					r.ping(p, far2.IP, "pod to pod on another node's second ENI")
				}
			}
		}
		if same := r.sameENI(n, first); same != nil {
			r.ping(first, same.IP, "pod to pod on one ENI")
		}
		if second != nil {
			r.ping(first, second.IP, "pod to pod across ENIs of one node")
			r.ping(second, first.IP, "pod to pod across ENIs of one node")
		}
	}
	r.crossed()
	r.unowned()
}

func (r *round) ping(p *node.Pod, to netip.Addr, what string) {
	r.step("ping", p.Ping(to, patience), "%s → %s  %s", p.IP, to, what)
}

// byENI returns a pod on the node's first ENI with pods, and a pod on another ENI.
func (r *round) byENI(n *labNode) (first, second *node.Pod) {
	for _, p := range r.pods[n] {
		e, _ := r.lab.eniOf(p.IP)
		if first == nil {
			first = p
			continue
		}
		if f, _ := r.lab.eniOf(first.IP); f.ID != e.ID {
			return first, p
		}
	}
	return first, nil
}

func (r *round) sameENI(n *labNode, with *node.Pod) *node.Pod {
	if with == nil {
		return nil
	}
	want, _ := r.lab.eniOf(with.IP)
	for _, p := range r.pods[n] {
		if e, _ := r.lab.eniOf(p.IP); e.ID == want.ID && p != with {
			return p
		}
	}
	return nil
}

// crossed checks that the round covered pods on two ENIs of one node.
func (r *round) crossed() {
	for _, n := range r.lab.nodes {
		if _, second := r.byENI(n); second != nil {
			return
		}
	}
	r.step("ping", errors.New("all pods are on one ENI each"), "pod to pod across ENIs")
}

// unowned checks that the network does not accept everything: an address that no ENI owns
// must not answer.
func (r *round) unowned() {
	for _, n := range r.lab.nodes {
		first, _ := r.byENI(n)
		if first == nil {
			continue
		}
		to := netip.MustParseAddr("10.0.15.250")
		var err error
		if first.Ping(to, denial) == nil {
			err = errors.New("it answers")
		}
		r.step("ping", err, "%s → %s  an unassigned address must not answer", first.IP, to)
		return
	}
}

// outside makes pods talk to the host beyond the VPC, which accepts only primary
// addresses and reports the one it saw.
func (r *round) outside(ctx context.Context) {
	for _, n := range r.lab.nodes {
		first, second := r.byENI(n)
		for _, p := range []*node.Pod{first, second} {
			if p == nil {
				continue
			}
			for _, network := range []string{"tcp", "udp"} {
				saw, err := p.Netns.AskEcho(ctx, network, netip.Addr{}, vpc.Outside, patience)
				if err == nil && saw.Addr() != n.Primary.PrimaryIP {
					err = fmt.Errorf("want the node's primary address %s", n.Primary.PrimaryIP)
				}
				r.step("outside", err, "%s → %s/%s  outside saw %s", p.IP, vpc.Outside, network, saw.Addr())
			}
		}
	}
}

// status shows cnictl's view of the three nodes.
func (r *round) status(ctx context.Context, bin string) {
	args := []string{"status", "--targets", r.lab.targets()}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, cnictlBinary), args...).CombinedOutput()
	r.step("cnictl", err, "status of %d nodes", len(r.lab.nodes))
	for line := range strings.Lines(strings.TrimRight(string(out), "\n") + "\n") {
		fmt.Print("        | ", line)
	}
}

func (r *round) deleteAll() {
	var wg sync.WaitGroup
	for n, pods := range r.pods {
		slots := make(chan struct{}, 4)
		for _, p := range pods {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				err := n.DelPod(p)
				r.step("delete", err, "%s  %s/%s  %s", n.Name, p.Namespace, p.Name, p.IP)
			})
		}
	}
	wg.Wait()
}

// leftovers takes everything down and lists what should no longer exist:
// first the pods' traces on running nodes, then the nodes' traces in the account.
func (r *round) leftovers(ctx context.Context) []string {
	var left []string
	for _, n := range r.lab.nodes {
		wait, cancel := context.WithTimeout(ctx, patience)
		found, err := n.Leftovers(wait)
		cancel()
		r.step("left", err, "%s  rules, routes, links, namespaces and assignments of pods: %d", n.Name, len(found))
		for _, f := range found {
			left = append(left, n.Name+": "+f)
		}
	}
	r.step("stop", r.lab.stopDaemons(ctx), "daemons of all nodes, by SIGTERM")
	for _, n := range r.lab.nodes {
		err := errors.Join(n.Close(), r.lab.world.RemoveInstance(n.InstanceID))
		r.step("stop", err, "%s and its instance", n.Name)
	}
	objects := r.account()
	r.step("left", errors.Join(r.lab.world.Check(), violations(r.lab.world)), "EC2 objects: %d", len(objects))
	links, err := r.lab.fabric.Links()
	r.step("left", err, "links in the network: %d", len(links))
	r.step("stop", r.lab.close(), "network")
	return append(append(left, objects...), links...)
}

// account lists EC2 objects that outlived the instances.
func (r *round) account() []string {
	var left []string
	for _, e := range r.lab.world.ENIs() {
		left = append(left, fmt.Sprintf("EC2: network interface %s (%s)", e.ID, e.Status))
	}
	for _, before := range r.lab.subnets {
		if now, ok := r.lab.world.Subnet(before.ID); !ok || now.Free != before.Free {
			left = append(left, fmt.Sprintf("EC2: %d addresses of subnet %s", before.Free-now.Free, before.ID))
		}
	}
	return left
}

func violations(w *fakeaws.World) error {
	if v := w.Violations(); len(v) > 0 {
		return fmt.Errorf("requests that EC2 would not understand: %s", strings.Join(v, "; "))
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
