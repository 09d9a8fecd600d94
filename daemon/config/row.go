package config

import (
	"slices"
	"strings"
)

// Row is one environment variable.
type Row struct {
	Group      string // heading in the documentation
	Name       string
	Default    string   // in code; "" = not set
	Manifest   string   // in the shipped manifest, when it differs from Default
	Readers    []Reader // who reads it
	Since      string   // release of upstream that introduced it, where established; "ours" = not in upstream
	Deprecated string   // why it should no longer be set and what does its work; "" = it may be set
	Support    Support
	Secret     bool // its value is never shown
	Meaning    string

	// emptyUnset: set but empty is the same as not set. Otherwise an empty value is
	// used, which for most kinds is a bad value (spec/plugin.md §9, parsers A and B).
	emptyUnset bool
	bind       binding
}

// Kind is the type of a value.
type Kind string

const (
	Bool     Kind = "bool"
	Int      Kind = "integer"
	Seconds  Kind = "seconds"
	Duration Kind = "duration"
	Enum     Kind = "word"
	Text     Kind = "text"
	Path     Kind = "path"
	Address  Kind = "address"
	CIDRs    Kind = "CIDR list"
	Tags     Kind = "JSON object"
	URL      Kind = "URL" // shown without its user and password
)

// Reader is a binary that reads a variable.
type Reader string

const (
	Agent      Reader = "aws-k8s-agent"
	Entrypoint Reader = "aws-vpc-cni"
	Init       Reader = "aws-vpc-cni-init"
	Plugin     Reader = "aws-cni"    // settings reach it through the conflist
	Egress     Reader = "egress-cni" // settings reach it through the conflist
	Helper     Reader = "cni-metrics-helper"
	SDK        Reader = "AWS SDK"
	ClientGo   Reader = "client-go"
)

// Support says what this version does with a variable.
type Support string

const (
	Acts   Support = "yes"
	NoOp   Support = "no-op"  // nothing reads it any more
	Passed Support = "passed" // read by a library or given by the runtime
)

// Kind is the type of the variable's value.
func (r Row) Kind() Kind { return r.bind.kind }

// Accepts says for people what may be written, with bounds.
func (r Row) Accepts() string { return r.bind.accepts }

// binding joins a row to its field: load sets the field or says why not, show
// prints the value in effect. Both are nil for variables that others read.
type binding struct {
	kind    Kind
	accepts string
	load    func(*Config, string) []Problem
	show    func(*Config) string
}

// group is the rows under one heading of the documentation.
type group struct {
	title string
	rows  []Row
}

func grouped(groups []group) []Row {
	var out []Row
	for _, g := range groups {
		for _, r := range g.rows {
			r.Group = g.title
			out = append(out, r)
		}
	}
	return out
}

// Table returns a copy of all rows, in the order of the documentation.
func Table() []Row { return slices.Clone(table) }

func lookup(name string) (Row, bool) {
	i := slices.IndexFunc(table, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return table[i], true
}

// ReadBy reports whether a binary reads the variable.
func (r Row) ReadBy(who Reader) bool { return slices.Contains(r.Readers, who) }

func (r Row) readers() string {
	names := make([]string, len(r.Readers))
	for i, who := range r.Readers {
		names[i] = string(who)
	}
	return strings.Join(names, ", ")
}
