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
			for line := range strings.Lines(cmd.Long) {
				if len([]rune(line)) > 100 {
					t.Errorf("%s: a line of %d: %s", path, len([]rune(line)), line)
				}
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
