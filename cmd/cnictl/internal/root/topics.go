package root

import "github.com/spf13/cobra"

// topics are pages of help that are no commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What exit codes mean", Long: `Exit codes:
  0    done
  1    unexpected failure
  2    usage: unknown flag, command or format, bad argument
  3    doctor: findings at or above --fail-on
  4    partial: some nodes could not be read (--allow-partial makes it 0)
  5    no node could be read, or access was denied
  6    not found
  7    doctor: no finding, but evidence was missing
  130  interrupted (ending --watch is 0)`},
		{Use: "environment", Short: "Environment variables", Long: `Every flag can be given as a variable: CNICTL_ and its name in capitals, - as _, so
--node-timeout is CNICTL_NODE_TIMEOUT. A flag on the command line comes first; an
empty variable is as none.

NO_COLOR, CLICOLOR=0 and TERM=dumb switch colour off, CLICOLOR_FORCE switches it on;
--color=always and --color=never come before all of them.
CNICTL_FORCE_TTY=80x24 makes output count as a terminal of that size (for tests).
INTROSPECTION_BIND_ADDRESS tells local where this node's daemon listens.`},
		{Use: "output", Short: "Output forms", Long: `-o table is for people; -o wide shows all columns and rows. Off a terminal nothing is
cut, coloured or redrawn.

-o json and -o yaml are for programs: documents with apiVersion and kind whose members
are only ever added to. Numbers are numbers, times RFC 3339 in UTC, durations seconds
with the unit in the name, and null is what is not known, never 0. With --watch they
are a stream: one JSON document per line, or YAML documents after ---.

  status        FleetStatus     totals and problems
  nodes         NodeIPAMList    a NodeIPAM per node (with --watch: those that changed)
  node show     NodeIPAM        the summary and the ENIs
  node enis     ENIList
  node ips      AddressList
  node config   NodeConfig`},
	}
}
