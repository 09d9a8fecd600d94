package cli

import (
	"strings"
	"unicode"

	"cnictl/daemon/api/introspect"
)

// maxPodName is the longest name of a Kubernetes object.
const maxPodName = 253

// Pod parses the name of a pod: NAMESPACE/NAME, or NAME if there is a default namespace. The name
// must not contradict --namespace.
func (f *Factory) Pod(text, namespace string) (introspect.PodRef, error) {
	pod := introspect.PodRef{Namespace: namespace, Name: strings.TrimPrefix(text, "pod/")}
	if before, after, both := strings.Cut(pod.Name, "/"); both {
		pod.Namespace, pod.Name = before, after
	}
	why := ""
	switch {
	case pod.Namespace == "" || pod.Name == "" || strings.Contains(pod.Name, "/"):
		why = "expected NAMESPACE/NAME, or NAME with -n NAMESPACE"
	case len(pod.Namespace) > maxPodName || len(pod.Name) > maxPodName:
		why = "the name is too long"
	case strings.ContainsFunc(pod.Namespace+pod.Name, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		why = "it contains a blank or an unprintable character"
	case f.SourceOf(namespaceFlag) == FromFlag && !f.Globals.Kube.Shows(pod.Namespace):
		return introspect.PodRef{}, Usage("pod %s/%s is not in --namespace=%s", pod.Namespace, pod.Name, f.Globals.Kube.Namespace)
	default:
		return pod, nil
	}
	return introspect.PodRef{}, &Error{Code: ExitUsage, What: text + " is not a pod name", Why: why}
}
