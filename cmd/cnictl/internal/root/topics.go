package root

import "github.com/spf13/cobra"

// topics are help pages that are not commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "connection", Short: "How nodes are reached", Long: connection},
		{Use: "filter", Short: "Syntax of --filter", Long: `Rows are shown if every term matches. Terms are separated by spaces:

  word           a visible column contains it, ignoring case
  "two words"    the same for a phrase
  re:^ip-10-0    a visible column matches the regular expression
  type=m5.*      a column has this value; * matches any text
  state!=ok      a column does not have this value
  free<5         compares a column: >, >=, <, <= with numbers, percentages, ages (5m)
  label:team=x   a label of the node has this value
  label:team     the node has that label
  !term          the term does not match

Unknown values never match a comparison. --columns without a value lists the columns.`},
		{Use: "evidence", Short: "Evidence files of the doctor",
			Long: `doctor --save-evidence FILE writes everything that an examination looked at to a file, and
doctor --evidence FILE examines it again, anywhere and without a cluster. A file is plain: what was
read of each node, source by source, in YAML or JSON of at most 8 MiB:

  schemaVersion: 2
  at: 2026-11-21T14:02:11Z
  mode: laptop
  interval: 30s
  sources:
    k8s.wh: {missing: forbidden}
  nodes:
    - node: ip-10-0-0-9.ec2.internal
      sources:
        kern.sysctl: {net.ipv4.ip_forward: "0"}
        log.ipamd:
          lines:
            - {at: 2026-11-21T14:01:31Z, level: error, msg: InsufficientFreeAddressesInSubnet}
      later:
        sources:
          kern.sysctl: {net.ipv4.ip_forward: "1"}

A source that is not named was not read. "sources" at the top are those of all nodes, "later" has
the sources that differed at the second reading, and "missing" says why a source could not be read.
With "once: true" there was one reading. docs/evidence.schema.json is the JSON Schema. Files of
format 1 that doctor and bundle saved are read too.

Evidence holds names and addresses of a cluster; files are written with mode 0600.`},
		{Use: "exit-codes", Short: "Exit codes", Long: `Exit codes:
  0    success
  1    unexpected failure
  2    usage: unknown flag, command or format, invalid argument, no terminal where one is needed
  3    doctor: findings at or above --fail-on; migrate check: a blocking check;
       migrate values: something is left out
  4    partial: some nodes could not be read (0 with --allow-partial); nodes without aws-node,
       such as Fargate and Windows, do not count
  5    no node or cluster could be read, access was denied, or the daemon does not report what
       was asked for (upstream's: node plan, config)
  6    not found
  7    doctor: nothing could be read, or not all with --strict; migrate check: no blocking check,
       but one undecided (or unread, with --require-all)
  129  ended by SIGHUP: its terminal was closed
  130  interrupted (0 for --watch, logs -f and the screens)
  143  ended by SIGTERM`},
		{Use: "environment", Short: "Environment variables and the settings file",
			Long: `Every flag can be set by an environment variable: CNICTL_ and the flag's name in capitals,
with _ for -, so --node-timeout is CNICTL_NODE_TIMEOUT. The command line takes precedence,
then the variable, then the settings file, then the default. An empty variable counts as unset.

The settings file is $XDG_CONFIG_HOME/cnictl/config.yaml, else ~/.config/cnictl/config.yaml.
It holds global flags by name, and key bindings of the screens by action under keys:.
Credentials are not read from it. config view prints each setting and where it comes from.

NO_COLOR, CLICOLOR=0 and TERM=dumb turn colour off, CLICOLOR_FORCE turns it on;
--color=always and --color=never take precedence over all of them.
CNICTL_FORCE_TTY=80x24 treats the output as a terminal of that size (for tests).
INTROSPECTION_BIND_ADDRESS is where "local" expects this node's daemon to listen.`},
		{Use: "output", Short: "Output formats", Long: `-o table is for people; -o wide shows more columns and all rows. Off a terminal nothing is
truncated, coloured or redrawn. --columns selects columns by name.

-o json and -o yaml are for programs: documents with apiVersion and kind, to which fields are
only ever added. Numbers are numbers, times are RFC 3339 in UTC with whole seconds, durations
are seconds with the unit in the field's name, and null means unknown or absent, never 0 or an
empty string. With --watch they are a stream: one JSON document per line, or YAML documents
separated by ---.

-o name, jsonpath=…, jsonpath-file=…, jsonpath-as-json=…, go-template=…,
go-template-file=…, custom-columns=HEADER:path,… and custom-columns-file=… work as in kubectl,
on the same documents (jsonpath treats a null field as missing).
-o custom-columns=node,free selects columns of the table by name; without a value it lists
them. -o csv has the columns of -o wide, with one plain number per column: ENI 3/4 becomes ENI
and ENI LIMIT, and FOR SECONDS, FULL % and the like have the unit in the header. Unknown
values are empty.
-o name prints TYPE/NAME, which is accepted wherever a NODE is. Events and log lines have no
names, so they don't support it.

  status                    FleetStatus: totals and problems
  nodes                     NodeIPAMList: a NodeIPAM per node (with --watch: changed nodes)
  node show                 NodeIPAM: summary and ENIs
  enis, node enis           ENIList
  ips, node ips             AddressList; for ips --by an AddressUseList
  subnets                   SubnetList; for one SUBNET a SubnetMap
  trunks                    TrunkList
  pods                      PodList
  node pods                 NodePodList
  node config               NodeSettingList
  node plan                 PlanComparison
  node metrics              NodeMetrics
  node checkpoint           NodeCheckpoint
  pod                       PodReport
  logs, events, top         LogList, EventList, RateList
  record, replay --info     Recording
  config view               Settings
  doctor                    DoctorReport; also -o junit, markdown and sarif
  doctor list               CauseList; doctor explain a Cause
  migrate check             MigrationCheck
  capacity type             CapacityTypeList; also -o karpenter and nodeadm
  capacity recommend        CapacityRecommendation; also -o karpenter and nodeadm
  explain                   CandidateList
  version                   Version`},
	}
}
