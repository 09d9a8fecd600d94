package cli

import (
	"errors"
	"strings"
	"unicode"

	"cnictl/daemon/api/introspect"
)

// maxPodName is the longest name of a Kubernetes object.
const maxPodName = 253

// ParsePod reads how people name a pod: NAMESPACE/NAME.
func ParsePod(text string) (introspect.PodRef, error) {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(text, "pod/"), "/")
	switch {
	case !ok || namespace == "" || name == "" || strings.Contains(name, "/"):
		return introspect.PodRef{}, errors.New("NAMESPACE/NAME is accepted")
	case len(namespace) > maxPodName || len(name) > maxPodName:
		return introspect.PodRef{}, errors.New("longer than names are")
	case strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return introspect.PodRef{}, errors.New("it holds a blank or a character that cannot be printed")
	}
	return introspect.PodRef{Namespace: namespace, Name: name}, nil
}
