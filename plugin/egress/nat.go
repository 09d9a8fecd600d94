package egress

import (
	"errors"
	"path"
	"strings"

	"cnictl/plugin/egress/rules"
)

// nat is the nat table of one family.
type nat struct {
	p             *Process
	save, restore string // programs
}

// errNoIPTables: there is no program to make rules with.
var errNoIPTables = errors.New("not found")

type noProgramError struct{ name string }

func (e *noProgramError) Error() string {
	return "failed to locate " + e.name + `: executable file not found in $PATH, /usr/sbin, /sbin or /usr/local/sbin; install iptables on the node`
}
func (e *noProgramError) Is(target error) bool { return target == errNoIPTables }

// openNAT looks the programs up. Those of the host are used, and so its back end.
func (p *Process) openNAT(v6 bool) (*nat, error) {
	name := "iptables"
	if v6 {
		name = "ip6tables"
	}
	n := &nat{p: p}
	for program, into := range map[string]*string{name + "-save": &n.save, name + "-restore": &n.restore} {
		if *into = p.lookPath(program); *into == "" {
			return nil, &noProgramError{program}
		}
	}
	return n, nil
}

// lookPath also finds programs where the runtime's PATH has no system directories.
func (p *Process) lookPath(name string) string {
	dirs := strings.Split(p.Getenv("PATH"), ":")
	for _, dir := range append(dirs, "/usr/sbin", "/sbin", "/usr/local/sbin") {
		if file := path.Join(dir, name); path.IsAbs(file) && regular(file, true) {
			return file
		}
	}
	return ""
}

// begin starts a transaction. It waits for the lock that others may hold.
func (n *nat) begin(text string) (*child, error) {
	return n.p.start(n.restore, []string{"--noflush", "-w"}, n.p.Environ(), []byte(text))
}

func (n *nat) do(text string) error {
	if text == "" {
		return nil
	}
	c, err := n.begin(text)
	if err == nil {
		_, _, err = c.wait()
	}
	return err
}

func (n *nat) saved() (string, error) {
	c, err := n.p.start(n.save, []string{"-t", "nat"}, n.p.Environ(), nil)
	if err != nil {
		return "", err
	}
	out, _, err := c.wait()
	return string(out), err
}

// natTries bounds how often the table is read and changed while others change it too.
const natTries = 3

// change does what the table, as it is, makes of a wish.
func (n *nat) change(transaction func(saved string) string) (err error) {
	for range natTries {
		var saved string
		if saved, err = n.saved(); err != nil {
			return err
		}
		if err = n.do(transaction(saved)); err == nil {
			return nil
		}
	}
	return err
}

// finishAdd waits for the transaction that adds s. When it was refused, part of it is
// there already, or others were in the way.
func (n *nat) finishAdd(c *child, s rules.SNAT) error {
	if _, _, err := c.wait(); err == nil {
		return nil
	}
	return n.change(s.Repair)
}

// remove deletes a chain and what jumps to it. quick is the transaction that mostly
// fits; empty if there is none.
func (n *nat) remove(chain, quick string) error {
	if quick != "" && n.do(quick) == nil {
		return nil
	}
	return n.change(func(saved string) string { return rules.Remove(saved, chain) })
}
