package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"cnictl/daemon/lazy"
)

// nodeFlags select nodes and how to reach them. Settings from the environment or the file
// need not be repeated: they apply to the next command too.
var nodeFlags = []string{
	"kubeconfig", "context", "cluster", "user", "server", "daemonset-namespace", "daemonset-selector",
	"targets", "nodes", "selector", "via", "replay", "at",
}

// SameNodes returns the flags of this command line that another command needs to find the
// same nodes, each after a blank and quoted for the shell; "" if none was given.
func (f *Factory) SameNodes() string {
	var b strings.Builder
	for _, name := range nodeFlags {
		switch {
		case name == "replay" && f.RecordingFile != "":
			b.WriteString(" --replay=" + shellWord(f.RecordingFile))
		case f.sources[name] == FromFlag:
			b.WriteString(" --" + name + "=" + shellWord(textOf(f.flags.Lookup(name).Value)))
		}
	}
	return b.String()
}

// With returns this command line with one argument replaced; "" if it has no such argument.
func (f *Factory) With(argument, other string) string {
	if f.flags == nil || !slices.Contains(f.flags.Args(), argument) {
		return ""
	}
	words := []string{f.command}
	for _, a := range f.flags.Args() {
		if a == argument {
			a = other
		}
		words = append(words, shellWord(a))
	}
	return strings.Join(words, " ")
}

func textOf(v pflag.Value) string {
	if list, ok := v.(pflag.SliceValue); ok {
		return strings.Join(list.GetSlice(), ",")
	}
	return v.String()
}

var plainWord = lazy.Regexp(`^[\w@%+=:,./-]+$`)

// shellWord quotes a text as one word for a POSIX shell.
func shellWord(s string) string {
	if plainWord().MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
