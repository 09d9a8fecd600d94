package access

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cnictl/cmd/cnictl/internal/cli"
)

// use is how a command handles --replay.
type use struct {
	command string // below the tool
	lacks   string // why it cannot read a recording; "" if it can
	instead string // the command line that can, with FILE for the recording
}

// uses are the commands that read nodes, and whether they can read a recording instead.
// Replay enforces this table; help and docs/cli.md list it. Commands that are not in it read
// no nodes, or show a recording on the screens.
var uses = []use{
	{command: "status"}, {command: "nodes"},
	{command: "node"}, {command: "node show"}, {command: "node enis"}, {command: "node ips"}, {command: "node pods"}, {command: "node plan"},
	{command: "node checkpoint"},
	{command: "pod"}, {command: "pods"}, {command: "enis"}, {command: "ips"}, {command: "subnets"}, {command: "trunks"}, {command: "events"},
	{command: "logs"}, {command: "top"}, {command: "doctor"}, {command: "migrate check"}, {command: "version"}, {command: "capacity subnet"},
	{command: "capacity whatif"}, {command: "capacity recommend"},

	{"node config", "the settings of daemons are not recorded", "node show NODE --replay FILE"},
	{"node metrics", "metrics are not recorded", "node show NODE --replay FILE"},
	{"node raw", "raw answers of daemons are not recorded", "node show NODE -o json --replay FILE"},
	{"local", "it reads this host only", "status --replay FILE"},
	{"record", "it records live nodes; FILE already is a recording", "replay FILE"},
	{"bundle", "what the doctor reads is not all recorded", "replay FILE"},
	{"replay", "it takes the recording as its argument", "replay FILE"},
}

// useOf returns the use of a command or of its nearest parent; ok is false for a command that
// reads no nodes.
func useOf(command string) (use, bool) {
	for {
		if i := slices.IndexFunc(uses, func(u use) bool { return u.command == command }); i >= 0 {
			return uses[i], true
		}
		above := strings.LastIndexByte(command, ' ')
		if above < 0 {
			return use{}, false
		}
		command = command[:above]
	}
}

// Replayed lists the commands that read a recording, for help. The verbs of node come right
// after it.
func Replayed() string {
	var names, verbs []string
	node := 0
	for _, u := range uses {
		verb, of := strings.CutPrefix(u.command, "node ")
		switch {
		case u.lacks != "":
		case of:
			verbs = append(verbs, verb)
		default:
			if u.command == "node" {
				node = len(names)
			}
			names = append(names, u.command)
		}
	}
	names[node] += " (" + strings.Join(verbs, ", ") + ")"
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// commandOf returns the name of a command without that of the tool.
func commandOf(cmd *cobra.Command) string {
	var words []string
	for ; cmd.HasParent(); cmd = cmd.Parent() {
		words = append(words, cmd.Name())
	}
	slices.Reverse(words)
	if len(words) > 1 && words[0] == "get" { // kubectl's word for a list
		words = words[1:]
	}
	return strings.Join(words, " ")
}

// Replay makes a command read the recording of --replay, if given, or rejects the flag.
func Replay(f *cli.Factory) cli.Step {
	return func(cmd *cobra.Command) error {
		g := &f.Globals
		of, reads := useOf(commandOf(cmd))
		switch {
		case g.Replay == "" && g.At != "" && cmd.Name() != "replay":
			return &cli.Error{Code: cli.ExitUsage, What: "--at selects a time in a recording, but no recording is given",
				Do: cmd.CommandPath() + " --replay FILE --at " + g.At}
		case g.Replay == "" || !reads:
			return nil
		case of.lacks != "":
			return notReplayed(f, cmd, of)
		}
		return ReadRecording(f, g.Replay)
	}
}

// notReplayed rejects --replay for a command, and suggests one that can read a recording.
func notReplayed(f *cli.Factory, cmd *cobra.Command, of use) *cli.Error {
	name := commandOf(cmd)
	if name == "" {
		name = f.Name + " without a command"
	}
	instead := strings.Replace(of.instead, "FILE", f.Globals.Replay, 1)
	if node := cmd.Flags().Arg(0); node != "" {
		instead = strings.Replace(instead, "NODE", node, 1)
	}
	return &cli.Error{Code: cli.ExitUsage, What: name + " does not read a recording", Why: of.lacks, Do: f.Name + " " + instead}
}
