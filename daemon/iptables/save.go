package iptables

import (
	"strconv"
	"strings"
)

// Ruleset is the content of iptables-save's output: tables in order.
type Ruleset struct {
	Tables []Table
	// Foreign names tables with rules that iptables can't read, because a program wrote
	// them with nft directly. Their chains are not in Tables.
	Foreign []string
}

// Table is one table of iptables.
type Table struct {
	Name   string
	Chains []Chain
}

// Chain is one chain with its rules in order.
type Chain struct {
	Name   string
	Policy string   // "ACCEPT", "DROP"; "-" for user-defined chains
	Rules  []string // what follows "-A <chain> "
}

// Lines returns the rules as iptables-save prints them.
func (c Chain) Lines() []string {
	out := make([]string, len(c.Rules))
	for i := range c.Rules {
		out[i] = c.Line(i)
	}
	return out
}

// Line returns rule i as iptables-save prints it.
func (c Chain) Line(i int) string {
	if c.Rules[i] == "" {
		return "-A " + c.Name
	}
	return "-A " + c.Name + " " + c.Rules[i]
}

// Table finds a table.
func (r Ruleset) Table(name string) (Table, bool) {
	for _, t := range r.Tables {
		if t.Name == name {
			return t, true
		}
	}
	return Table{}, false
}

// Chain finds a chain.
func (t Table) Chain(name string) (Chain, bool) {
	for _, c := range t.Chains {
		if c.Name == name {
			return c, true
		}
	}
	return Chain{}, false
}

// String prints the rule set as iptables-save does, without its comment lines and
// with all counters 0.
func (r Ruleset) String() string {
	var b strings.Builder
	for _, t := range r.Tables {
		b.WriteString("*" + t.Name + "\n")
		for _, c := range t.Chains {
			b.WriteString(":" + c.Name + " " + c.Policy + " [0:0]\n")
		}
		for _, c := range t.Chains {
			for _, line := range c.Lines() {
				b.WriteString(line + "\n")
			}
		}
		b.WriteString("COMMIT\n")
	}
	return b.String()
}

// FormatError is a line of output in an unexpected format.
type FormatError struct {
	What string // the program
	Line int    // from 1; 0 for the end of the text
	Text string
	Want string
}

func (e *FormatError) Error() string {
	if e.Line == 0 {
		return "parse output of " + e.What + ": it ends early, expected " + e.Want
	}
	return "parse output of " + e.What + ": line " + strconv.Itoa(e.Line) + " " + strconv.Quote(e.Text) + ", expected " + e.Want
}

// ParseSave reads the output of iptables-save, with or without counters. It refuses lines
// that iptables-save does not print: a program that changes a node's rules must have read
// them all.
func ParseSave(text string) (Ruleset, error) {
	p := saveParser{byName: map[string]int{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if want := p.line(line); want != "" {
			return Ruleset{}, &FormatError{What: "iptables-save", Line: n, Text: line, Want: want}
		}
	}
	if p.table != nil {
		return Ruleset{}, &FormatError{What: "iptables-save", Want: "COMMIT of table " + p.table.Name}
	}
	return p.out, nil
}

// ParseKnown does the same as [ParseSave], but skips lines that ParseSave would refuse: a
// caller that looks for chains of known names must not fail because of others.
func ParseKnown(text string) Ruleset {
	p := saveParser{byName: map[string]int{}}
	for line := range strings.Lines(text) {
		_ = p.line(strings.TrimRight(line, "\r\n"))
	}
	if p.table != nil {
		p.out.Tables = append(p.out.Tables, *p.table)
	}
	return p.out
}

type saveParser struct {
	out    Ruleset
	table  *Table         // being read
	byName map[string]int // its chains
}

// line parses one line. It returns what was expected instead, or "".
func (p *saveParser) line(line string) (want string) {
	switch {
	case line == "":
		return ""
	case line[0] == '#':
		p.comment(line)
		return ""
	case line[0] == '*':
		return p.begin(line[1:])
	case p.table == nil:
		return "*<table> or a comment"
	case line == "COMMIT":
		p.out.Tables = append(p.out.Tables, *p.table)
		p.table = nil
		clear(p.byName)
		return ""
	case line[0] == ':':
		return p.chain(line[1:])
	default:
		return p.rule(line)
	}
}

// comment recognises the line with which iptables-save (nf_tables) reports that it can't
// print a table.
func (p *saveParser) comment(line string) {
	rest, ok := strings.CutPrefix(line, "# Table `")
	if !ok {
		return
	}
	if name, tail, ok := strings.Cut(rest, "'"); ok && strings.Contains(tail, "incompatible") {
		p.out.Foreign = append(p.out.Foreign, name)
	}
}

func (p *saveParser) begin(name string) (want string) {
	if p.table != nil {
		return "COMMIT of table " + p.table.Name
	}
	if name == "" || strings.ContainsAny(name, " \t") {
		return "*<table>"
	}
	if _, twice := p.out.Table(name); twice {
		return "each table once"
	}
	p.table = &Table{Name: name}
	return ""
}

func (p *saveParser) chain(rest string) (want string) {
	f := strings.Fields(rest)
	if len(f) < 2 || len(f) > 3 {
		return ":<chain> <policy> [<packets>:<bytes>]"
	}
	if _, twice := p.byName[f[0]]; twice {
		return "each chain once"
	}
	p.byName[f[0]] = len(p.table.Chains)
	p.table.Chains = append(p.table.Chains, Chain{Name: f[0], Policy: f[1]})
	return ""
}

func (p *saveParser) rule(line string) (want string) {
	if line[0] == '[' { // iptables-save -c
		_, rest, ok := strings.Cut(line, "] ")
		if !ok {
			return "[<packets>:<bytes>] -A <chain> <rule>"
		}
		line = rest
	}
	rest, ok := strings.CutPrefix(line, "-A ")
	if !ok {
		return "-A <chain> <rule>"
	}
	name, spec, _ := strings.Cut(rest, " ")
	i, ok := p.byName[name]
	if !ok {
		return "-A and a chain of table " + p.table.Name
	}
	c := &p.table.Chains[i]
	c.Rules = append(c.Rules, spec)
	return ""
}
