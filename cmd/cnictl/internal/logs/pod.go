package logs

import (
	"slices"
	"strings"

	"cnictl/daemon/api/daemonlog"
	"cnictl/daemon/lazy"
)

// podFilter selects the lines that name a pod; the zero value accepts all.
type podFilter struct{ namespace, name string }

// podFilterOf parses --pod: NAME, or NAMESPACE/NAME.
func podFilterOf(text string) podFilter {
	namespace, name, both := strings.Cut(text, "/")
	if !both {
		return podFilter{name: text}
	}
	return podFilter{namespace, name}
}

// namespaceArgument matches the namespace in upstream's messages: as a CNI argument, or as in
// a printed request.
var namespaceArgument = lazy.Regexp(`K8S_POD_NAMESPACE[:=]\\?"?([a-z0-9-]+)`)

// accepts reports whether a line names the pod: in its pod fields if it has any, else as a
// word in its text.
func (p podFilter) accepts(line string) bool {
	if p.name == "" || !strings.Contains(line, p.name) {
		return p.name == ""
	}
	read := daemonlog.Parse(line)
	if pod, ok := member(read, daemonlog.Member.IsPod); ok {
		namespace, named := member(read, daemonlog.Member.IsNamespace)
		if before, after, both := strings.Cut(pod, "/"); both {
			namespace, pod, named = before, after, true
		}
		return pod == p.name && (p.namespace == "" || !named || namespace == p.namespace)
	}
	texts := []string{read.Message}
	for _, m := range read.Members {
		texts = append(texts, m.Value)
	}
	for _, text := range texts {
		if p.in(text) {
			return true
		}
	}
	return false
}

func member(line daemonlog.Line, is func(daemonlog.Member) bool) (string, bool) {
	if i := slices.IndexFunc(line.Members, is); i >= 0 {
		return line.Members[i].Value, true
	}
	return "", false
}

// in reports whether a text names the pod.
func (p podFilter) in(text string) bool {
	if m := namespaceArgument().FindStringSubmatch(text); m != nil && p.namespace != "" && m[1] != p.namespace {
		return false
	}
	for from := 0; ; {
		at := strings.Index(text[from:], p.name)
		if at < 0 {
			return false
		}
		start, end := from+at, from+at+len(p.name)
		if p.begins(text[:start]) && ends(text[end:]) {
			return true
		}
		from = start + 1
	}
}

// begins reports whether a name can begin after this text: not within a word, nor after
// another namespace.
func (p podFilter) begins(before string) bool {
	if space, ok := strings.CutSuffix(before, "/"); ok && p.namespace != "" {
		rest, is := strings.CutSuffix(space, p.namespace)
		return is && apart(rest)
	}
	return apart(before)
}

// apart reports whether a word can begin after this text.
func apart(before string) bool {
	n := len(before)
	return n == 0 || !inWord(before[n-1]) && !(joins(before[n-1]) && n > 1 && inWord(before[n-2]))
}

// ends reports whether a name can end before this text.
func ends(after string) bool {
	return after == "" || !inWord(after[0]) && !(joins(after[0]) && len(after) > 1 && inWord(after[1]))
}

func inWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_'
}

// joins reports whether c may occur within a pod's name. It may also end a word in a
// sentence.
func joins(c byte) bool { return c == '-' || c == '.' }
