package file

import (
	"iter"
	"reflect"
	"strings"

	"cnictl/doctor/evidence"
)

// source is one source of a reading, with any type of content.
type source struct{ v reflect.Value } // an evidence.Source

func (s source) content() reflect.Value { return s.v.Field(0) }

func (s source) lack(reason string) {
	s.v.SetZero()
	s.v.Field(1).SetString(reason)
}

func (s source) missing() string { return s.v.Field(1).String() }

// sourcesOf yields the sources of a reading by id, in the order of the documentation.
func sourcesOf(r *evidence.Reading) iter.Seq2[string, source] {
	return func(yield func(string, source) bool) {
		v := reflect.ValueOf(r).Elem()
		for _, m := range membersOf(v.Type()).list {
			if !yield(m.name, source{v.FieldByIndex(m.index)}) {
				return
			}
		}
	}
}

// group returns the part of a source's id before the dot.
func group(id string) string {
	name, _, _ := strings.Cut(id, ".")
	return name
}

// groups can be named instead of all their sources.
var groups = []string{"intro", "log", "kern", "host", "ec2", "k8s"}

// read reports whether a mode can read a source.
func read(mode evidence.Mode, id string) bool {
	switch mode {
	case evidence.ModeLaptop:
		switch group(id) {
		case "intro", "metrics", "k8s", "ec2":
			return true
		}
		return id == "log.awsnode"
	case evidence.ModeBundle:
		switch group(id) {
		case "intro", "metrics", "ckpt", "log", "host":
			return true
		case "kern":
			return id != "kern.neigh"
		}
		return id == "ec2.type"
	case evidence.ModeCluster:
		return group(id) == "k8s" || id == "ec2.type"
	}
	switch id {
	case "ec2.resv", "ec2.quota", "ec2.sg", "ec2.rtb", "iam.sim", "iam.role", "eks.addon":
		return false
	}
	return true
}
