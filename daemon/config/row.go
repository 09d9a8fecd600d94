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
	Readers    []Reader // the binaries that read it
	Since      string   // upstream release that introduced it, if established; "ours" = not in upstream
	Deprecated string   // why not to set it any more and what replaces it; "" = not deprecated
	Support    Support
	Secret     bool   // its value is never shown
	Label      string // of the Node, which overrides it there; "" = none does
	Meaning    string

	// emptyUnset: set but empty means not set. Otherwise an empty value is used, and for most
	// kinds that is a bad value. Upstream has a parser of either kind.
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

// Support says how this version handles a variable.
type Support string

const (
	Acts   Support = "yes"
	NoOp   Support = "no-op"  // nothing reads it any longer
	Passed Support = "passed" // read by a library or set by the runtime
)

// Kind returns the type of the variable's value.
func (r Row) Kind() Kind { return r.bind.kind }

// Accepts describes the accepted values, with bounds, for people.
func (r Row) Accepts() string { return r.bind.accepts }

// binding joins a row to its field: load sets the field or reports why not, show prints the
// effective value. Both are nil for variables that only other programs read.
type binding struct {
	kind    Kind
	accepts string
	load    func(*Config, string) []Problem
	show    func(*Config) string
	number  func(*Config) *int // the field of an integer
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
func Table() []Row { return slices.Clone(table()) }

func lookup(name string) (Row, bool) {
	i := slices.IndexFunc(table(), func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return table()[i], true
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
