package root

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
)

// tree is the command tree with the tool called by a name.
func tree(name string) *cobra.Command {
	f := &cli.Factory{
		Streams: &cli.Streams{Out: new(bytes.Buffer), Err: new(bytes.Buffer)}, Env: func(string) (string, bool) { return "", false }, Now: time.Now, Name: name,
	}
	return New(f)
}

func everyCommand(cmd *cobra.Command, each func(*cobra.Command)) {
	if cmd.Name() == getCommand {
		return // the same commands again, in kubectl's words
	}
	each(cmd)
	for _, sub := range cmd.Commands() {
		everyCommand(sub, each)
	}
}

// TestHelp_IsComplete: every command has a description and examples, and the examples are
// valid: their commands, flags and numbers of arguments exist.
func TestHelp_IsComplete(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cnictl", "kubectl cni"} {
		root := tree(name)
		everyCommand(root, func(cmd *cobra.Command) {
			if !cmd.Runnable() || cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" || cmd.Hidden {
				return
			}
			path := cmd.CommandPath()
			if long := cmd.Long; cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || !strings.HasSuffix(long, ".") {
				t.Errorf("%s: short %q, long %q", path, cmd.Short, long)
			}
			if cmd.Example == "" {
				t.Errorf("%s has no examples", path)
			}
			for line := range strings.Lines(strings.ReplaceAll(cmd.Example, exampleCommand, name)) {
				checkExample(t, name, strings.TrimSpace(line))
			}
		})
	}
}

// checkExample parses a line of the examples as the tool would.
func checkExample(t *testing.T, name, line string) {
	t.Helper()
	if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "kubectl -n ") {
		return
	}
	at := strings.Index(line, name+" ")
	if at < 0 && line != name {
		t.Errorf("%q does not call %s", line, name)
		return
	}
	cmd, args, err := tree(name).Find(words(strings.TrimPrefix(line[max(at, 0):], name)))
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("%q: %v", line, err)
	}
}

// words splits a command line that uses no quotes but '.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

// TestHelp_SaysThatNothingChanges: the help says that nothing changes where a user might doubt it.
func TestHelp_SaysThatNothingChanges(t *testing.T) {
	t.Parallel()
	root := tree("cnictl")
	for path, want := range map[string]string{
		"": "nothing is ever changed.", "node": "nothing on the node is changed", "node plan": "Nothing\nis changed", "local": "nothing is changed",
	} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil || !strings.Contains(cmd.Long, want) {
			t.Errorf("%q does not say %q: %v", path, want, err)
		}
	}
}

// TestHelp_Fits: no line of any help is wider than 100 columns, whatever the tool is called as.
func TestHelp_Fits(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cnictl", "kubectl cni"} {
		everyCommand(tree(name), func(cmd *cobra.Command) {
			if cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
				return // cobra's
			}
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			if err := cmd.Help(); err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "  "+name+" ") {
					continue // an example, to be copied as one line
				}
				if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > helpWidth {
					t.Errorf("%s: a line of %d: %s", cmd.CommandPath(), n, line)
				}
			}
		})
	}
}

// TestHelp_Groups: every command is in one group of the root's help.
func TestHelp_Groups(t *testing.T) {
	t.Parallel()
	root := tree("cnictl")
	seen := map[string]int{}
	for _, g := range grouped(root) {
		if len(g.commands) == 0 {
			t.Errorf("%s is empty", g.title)
		}
		for _, cmd := range g.commands {
			seen[cmd.Name()]++
		}
	}
	for _, g := range groups {
		for _, name := range strings.Fields(g.names) {
			if seen[name] != 1 {
				t.Errorf("%s is there %d times", name, seen[name])
			}
		}
	}
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && seen[cmd.Name()] != 1 {
			t.Errorf("%s is there %d times", cmd.Name(), seen[cmd.Name()])
		}
	}
}
