package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"

	"cnictl/testenv/netns"
	"cnictl/testenv/node/agent"
)

// contender is one way of wiring pods, on a separate node.
type contender struct {
	name   string
	chain  []link // plugins, in the order of ADD
	node   machine
	daemon int    // process in the node whose CPU time counts too; 0 if none
	pods   int    // number created so far
	peak   string // program that runs the plugins and reports their memory; "" to run them directly
	idle   int    // number of links on the node without pods
}

// link is one plugin of a chain.
type link struct {
	plugin string         // path
	config map[string]any // network configuration
}

func single(plugin string, config map[string]any) []link { return []link{{plugin, config}} }

// machine is a simulated node.
type machine interface {
	Run(agent.Cmd) (agent.Result, error)
	NewNetns(name string) (*netns.NS, error) // the name is only a hint
	Remove(*netns.NS) error
	Namespace() *netns.NS
}

// bareNode is an empty node.
type bareNode struct{ *agent.Agent }

func (b bareNode) Namespace() *netns.NS                    { return b.NS }
func (b bareNode) NewNetns(name string) (*netns.NS, error) { return b.AddNetns(name) }
func (b bareNode) Remove(ns *netns.NS) error               { return errors.Join(ns.Close(), b.RemoveNetns(ns.Name)) }

// pod is one sandbox.
type pod struct {
	number int
	id     string
	netns  *netns.NS
	result json.RawMessage
}

func (c *contender) newPod() (*pod, error) {
	c.pods++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", c.name, c.pods))
	ns, err := c.node.NewNetns("b" + strconv.Itoa(c.pods))
	if err != nil {
		return nil, err
	}
	return &pod{number: c.pods, id: hex.EncodeToString(sum[:]), netns: ns}, nil
}

func (c *contender) newPods(n int) ([]*pod, error) {
	var out []*pod
	for range n {
		p, err := c.newPod()
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// remove removes the pods' namespaces and waits until the kernel has removed their links,
// so that the clean-up does not disturb the next measurement.
func (c *contender) remove(ctx context.Context, pods []*pod) error {
	for _, p := range pods {
		if err := c.node.Remove(p.netns); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		n, err := c.links()
		if err != nil {
			return err
		}
		if n <= c.idle {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: wait for links of removed pods to disappear: %d left: %w", c.name, n-c.idle, ctx.Err())
		case <-tick.C:
		}
	}
}

func (c *contender) links() (n int, err error) {
	err = c.node.Namespace().Do(func() error {
		h, err := netlink.NewHandle()
		if err != nil {
			return err
		}
		defer h.Close()
		list, err := netns.Dump(h.LinkList)
		n = len(list)
		return err
	})
	return n, err
}

// run runs one command of the chain for a pod, as a runtime does: each plugin of an ADD gets
// the previous plugin's result, and a DEL goes in reverse with the final result. The
// runtime's own time is not counted.
func (c *contender) run(p *pod, command string) (sum agent.Result, _ error) {
	chain := c.chain
	if command == "DEL" {
		chain = slices.Clone(chain)
		slices.Reverse(chain)
	}
	var last json.RawMessage
	for _, l := range chain {
		prev := last
		if command == "DEL" {
			prev = p.result
		}
		r, err := c.runOne(l, p, command, prev)
		if err != nil {
			return sum, err
		}
		last = bytes.Clone(r.Stdout)
		sum.Wall, sum.User, sum.System = sum.Wall+r.Wall, sum.User+r.User, sum.System+r.System
		sum.MinFault, sum.MaxRSS = sum.MinFault+r.MinFault, max(sum.MaxRSS, r.MaxRSS)
	}
	if command == "ADD" {
		p.result = last
	}
	return sum, nil
}

func (c *contender) runOne(l link, p *pod, command string, prev json.RawMessage) (agent.Result, error) {
	config := maps.Clone(l.config)
	if len(prev) > 0 {
		config["prevResult"] = prev
	}
	stdin, err := json.Marshal(config)
	if err != nil {
		return agent.Result{}, err
	}
	name := "pod-" + strconv.Itoa(p.number)
	argv := []string{l.plugin}
	if c.peak != "" {
		argv = []string{c.peak, l.plugin}
	}
	r, err := c.node.Run(agent.Cmd{Argv: argv, Stdin: stdin, Env: []string{
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin",
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + p.id, "CNI_IFNAME=eth0",
		"CNI_NETNS=" + filepath.Join(netns.Dir, p.netns.Name), "CNI_PATH=" + filepath.Dir(l.plugin),
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + name +
			";K8S_POD_INFRA_CONTAINER_ID=" + p.id + ";K8S_POD_UID=0a0b0c0d-0000-4000-8000-000000000001",
	}})
	if err != nil {
		return r, fmt.Errorf("%s: %s %s: %w", c.name, filepath.Base(l.plugin), command, err)
	}
	if r.Code != 0 {
		return r, &failure{fmt.Sprintf("%s: %s %s: exit %d: %s%s", c.name, filepath.Base(l.plugin), command, r.Code, r.Stdout, r.Stderr)}
	}
	if c.peak != "" {
		held, ok := readPeak(r.Stderr)
		if !ok {
			return r, fmt.Errorf("%s: no memory figure for %s: %q", c.name, l.plugin, r.Stderr)
		}
		r.MaxRSS = held
	}
	return r, nil
}

// failure is the error of a command that the plugin itself failed.
type failure struct{ text string }

func (f *failure) Error() string { return f.text }

// daemonCPU returns the CPU time that the daemon has used, from the scheduler's
// nanosecond accounting of its threads.
func (c *contender) daemonCPU() (time.Duration, error) {
	if c.daemon == 0 {
		return 0, nil
	}
	r, err := c.node.Run(agent.Cmd{Argv: []string{"/bin/sh", "-c", "cat /proc/" + strconv.Itoa(c.daemon) + "/task/*/schedstat"},
		Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		return 0, err
	}
	var sum time.Duration
	for line := range bytes.Lines(r.Stdout) {
		ns, err := strconv.ParseInt(string(bytes.Fields(line)[0]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read CPU time of %s: %w", c.name, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}

// startFile starts a program in the background and writes its output to a file.
func startFile(a *agent.Agent, path string, argv ...string) (pid int, err error) {
	out, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer out.Close()
	return a.Background(agent.Cmd{Argv: argv, Env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}}, out, out)
}
