package situation

import (
	"reflect"
	"strings"

	"cnictl/doctor/evidence"
)

// content returns the content of a source.
func content(s evidence.AnySource) reflect.Value { return reflect.ValueOf(s.Value()).Elem() }

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
