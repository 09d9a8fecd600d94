package names

import (
	"strings"

	"cnictl/daemon/api/introspect"
	"cnictl/tui/show"
)

// Pod returns namespace/name, safe to print; "" without a name.
func Pod(namespace, name string) string {
	switch {
	case name == "":
		return ""
	case namespace == "":
		return show.Safe(name)
	}
	return show.Safe(namespace) + "/" + show.Safe(name)
}

// SplitPod splits namespace/name.
func SplitPod(s string) introspect.PodRef {
	namespace, name, ok := strings.Cut(s, "/")
	if !ok {
		return introspect.PodRef{Name: s}
	}
	return introspect.PodRef{Namespace: namespace, Name: name}
}
