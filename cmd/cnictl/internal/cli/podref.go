package cli

import (
	"errors"
	"strings"
	"unicode"

	"cnictl/daemon/api/introspect"
)

// maxPodName is the longest name of a Kubernetes object.
const maxPodName = 253

// ParsePod parses the name of a pod: NAMESPACE/NAME.
func ParsePod(text string) (introspect.PodRef, error) {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(text, "pod/"), "/")
	switch {
	case !ok || namespace == "" || name == "" || strings.Contains(name, "/"):
		return introspect.PodRef{}, errors.New("expected NAMESPACE/NAME")
	case len(namespace) > maxPodName || len(name) > maxPodName:
		return introspect.PodRef{}, errors.New("the name is too long")
	case strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return introspect.PodRef{}, errors.New("it contains a blank or an unprintable character")
	}
	return introspect.PodRef{Namespace: namespace, Name: name}, nil
}
