package egress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cnictl/daemon/hostnet/egress"
	"cnictl/daemon/iptables"
)

// childDeadline limits the run time of a child program: iptables waits for its lock,
// host-local for its directory.
const childDeadline = time.Minute

// nat is the nat table of one family.
type nat struct {
	ctx           context.Context // of the only command of the process
	env           []string
	save, restore string // programs
}

// errNoIPTables means that iptables is not installed.
var errNoIPTables = errors.New("not found")

type noProgramError struct{ name string }

func (e *noProgramError) Error() string {
	return "failed to locate " + e.name + `: executable file not found in $PATH, /usr/sbin, /sbin or /usr/local/sbin; install iptables on the node`
}
func (e *noProgramError) Is(target error) bool { return target == errNoIPTables }

// openNAT looks up the programs. It uses the host's, and so the host's backend.
func (c *command) openNAT(v6 bool) (*nat, error) {
	name := "iptables"
	if v6 {
		name = "ip6tables"
	}
	n := &nat{ctx: c.ctx, env: c.p.Environ()}
	for program, into := range map[string]*string{name + "-save": &n.save, name + "-restore": &n.restore} {
		if *into = c.p.lookPath(program); *into == "" {
			return nil, &noProgramError{program}
		}
	}
	return n, nil
}

// lookPath finds programs even if the runtime's PATH has no system directories.
func (p *Process) lookPath(name string) string {
	dirs := filepath.SplitList(p.Getenv("PATH"))
	for _, dir := range append(dirs, "/usr/sbin", "/sbin", "/usr/local/sbin") {
		if !filepath.IsAbs(dir) {
			continue
		}
		if file, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return file
		}
	}
	return ""
}

// child is a running program.
type child struct {
	cmd            *exec.Cmd
	ctx            context.Context // of this program
	cancel         context.CancelFunc
	stdout, stderr bytes.Buffer
}

// start starts a program on a thread in the host's network namespace, where all threads of
// the process are except those that enter a pod's.
func (n *nat) start(stdin, program string, args ...string) (*child, error) {
	c := &child{}
	c.ctx, c.cancel = context.WithTimeout(n.ctx, childDeadline)
	c.cmd = exec.CommandContext(c.ctx, program, args...)
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = n.env, strings.NewReader(stdin), &c.stdout, &c.stderr
	// Its children may keep the output open. The time also counts from the program's end, after which
	// a busy node may take a while to read what it printed.
	c.cmd.WaitDelay = childDeadline
	if err := c.cmd.Start(); err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// wait waits for the program to end and returns its output.
func (c *child) wait() (string, error) {
	defer c.cancel()
	err := c.cmd.Wait()
	if err == nil {
		return c.stdout.String(), nil
	}
	how := err.Error()
	if c.ctx.Err() != nil {
		how = "did not end within " + childDeadline.String()
	}
	if text := strings.TrimSpace(c.stderr.String()); text != "" {
		how += ": " + text
	}
	return "", fmt.Errorf("%s: %s", c.cmd.Path, how)
}

// begin starts a transaction. iptables waits for the lock that others may hold.
func (n *nat) begin(text string) (*child, error) {
	return n.start(text, n.restore, "--noflush", "-w")
}

func (n *nat) do(text string) error {
	if text == "" {
		return nil
	}
	c, err := n.begin(text)
	if err == nil {
		_, err = c.wait()
	}
	return err
}

func (n *nat) table() (iptables.Table, error) {
	c, err := n.start("", n.save, "-t", "nat")
	if err != nil {
		return iptables.Table{}, err
	}
	saved, err := c.wait()
	return egress.NAT(saved), err
}

// natTries limits how often the table is read and changed while others are changing it.
const natTries = 3

// change applies a transaction computed from the current table.
func (n *nat) change(transaction func(iptables.Table) string) (err error) {
	for range natTries {
		var now iptables.Table
		if now, err = n.table(); err != nil {
			return err
		}
		if err = n.do(transaction(now)); err == nil {
			return nil
		}
	}
	return err
}

// finishAdd waits for the transaction that adds s. If it was refused, part of it existed
// already, or other rules were in the way.
func (n *nat) finishAdd(c *child, s egress.SNAT) error {
	if _, err := c.wait(); err == nil {
		return nil
	}
	return n.change(func(now iptables.Table) string { return egress.Repair(now, s) })
}

// remove deletes a chain and the rules that jump to it. quick is a transaction that
// usually works; empty if none.
func (n *nat) remove(chain, quick string) error {
	if quick != "" && n.do(quick) == nil {
		return nil
	}
	return n.change(func(now iptables.Table) string { return egress.Remove(now, chain) })
}
