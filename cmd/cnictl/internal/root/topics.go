package root

import (
	"github.com/spf13/cobra"
)

// topics are pages of help that are no commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "connection", Short: "How nodes are reached", Long: connection},
		{Use: "filter", Short: "The language of --filter", Long: `Rows are shown if every term matches. Terms are separated by blanks:

  word           a visible column contains it, ignoring case
  "two words"    the same for a phrase
  re:^ip-10-0    a visible column matches the regular expression
  type=m5.*      a column has this value; * matches any text
  state!=ok      a column does not have this value
  free<5         a column compared: >, >=, <, <= with numbers, percentages, ages (5m)
  label:team=x   a label of the node has this value
  label:team     the node has that label
  !term          the term does not match

Unknown values match no comparison. --columns without a value lists the columns.`},
		{Use: "exit-codes", Short: "What exit codes mean", Long: `Exit codes:
  0    done
  1    unexpected failure
  2    usage: unknown flag, command or format, bad argument, no terminal where one is needed
  3    doctor: findings at or above --fail-on
  4    partial: some nodes could not be read (--allow-partial makes it 0); nodes that need no
       aws-node, as on Fargate and Windows, do not count
  5    no node, or no cluster, could be read, or access was denied
  6    not found
  7    doctor: no finding, but evidence was missing
  129  ended by SIGHUP, the end of its terminal
  130  interrupted (ending --watch, logs -f or the screens is 0)
  143  ended by SIGTERM`},
		{Use: "environment", Short: "Environment variables and the file of settings", Long: `Every flag can be given as a variable: CNICTL_ and its name in capitals, - as _, so
--node-timeout is CNICTL_NODE_TIMEOUT. A flag on the command line comes first, then the
variable, then the file, then the default; an empty variable is as none.

The file is $XDG_CONFIG_HOME/cnictl/config.yaml, else ~/.config/cnictl/config.yaml, with
the global flags by name, and under keys: the keys of the screens by action. Credentials
are not read from it. config view prints each setting and where it is from.

NO_COLOR, CLICOLOR=0 and TERM=dumb switch colour off, CLICOLOR_FORCE switches it on;
--color=always and --color=never come before all of them.
CNICTL_FORCE_TTY=80x24 makes output count as a terminal of that size (for tests).
INTROSPECTION_BIND_ADDRESS is where "local" expects this node's daemon to listen.`},
		{Use: "output", Short: "Output forms", Long: `-o table is for people; -o wide shows more columns, and all rows. Off a terminal nothing
is cut, coloured or redrawn. --columns takes any that the command has, by name.

-o json and -o yaml are for programs: documents with apiVersion and kind whose members
are only ever added to. Numbers are numbers, times RFC 3339 in UTC and whole seconds,
durations seconds with the unit in the name, and null is what is not known or not there,
never 0 or an empty string. With --watch they are a stream: one JSON document per line, or
YAML documents after ---.

-o name, jsonpath=…, jsonpath-file=…, jsonpath-as-json=…, go-template=… and
go-template-file=… are kubectl's, over the same documents (to jsonpath a member that is
null is not there), and so is -o custom-columns=HEADER:path,… (custom-columns-file=…).
-o custom-columns=node,free takes the columns of the table by name; without a value it
lists them. -o csv has the columns of -o wide, with one plain number in a column: ENI 3/4
becomes ENI and ENI LIMIT, and FOR SECONDS, FULL % and the like have the unit in the
header. Unknown values are empty.
-o name prints TYPE/NAME, which is taken wherever a NODE is; events and lines of a log
have no names, and refuse it.

  status                    FleetStatus, totals and problems
  nodes                     NodeIPAMList, a NodeIPAM per node (with --watch: those that changed)
  node show                 NodeIPAM, the summary and the ENIs
  enis, node enis           ENIList
  ips, node ips             AddressList
  subnets                   SubnetList; of one SUBNET a SubnetMap
  trunks                    TrunkList
  node pods                 NodePodList
  node config               NodeSettingList
  node plan                 PlanComparison
  node metrics              NodeMetrics
  node checkpoint           NodeCheckpoint
  pod                       PodReport
  logs, events, top         LogList, EventList, RateList
  record, replay --info     Recording
  config view               Settings
  version                   Version`},
	}
}
