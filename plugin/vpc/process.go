package vpc

import (
	"io"
	"time"

	"cnictl/daemon/api/cniwire"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/netconf"
	"cnictl/plugin/pluginlog"
)

// Process is the environment of one plugin run. All fields except the paths are required.
type Process struct {
	Getenv  func(string) string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Version string // of this binary; empty in a source build
	Socket  string // of the daemon; empty means cniwire.Socket

	Checkpoint string // of the daemon; empty means netnames.CheckpointFile, as a plugin cannot know its setting
	Records    string // the plugin's own directory; empty means DefaultRecords

	LegacySocket string // of upstream's daemon; empty means cniwire.GRPCSocket
	PolicySocket string // of the policy agent; empty means cniwire.PolicySocket
}

// Run executes the command in CNI_COMMAND and returns the exit code of the process. After
// an ADD a thread of the process is in the pod's network namespace, so the process should
// end.
func (p *Process) Run() int {
	for _, path := range [...]struct {
		set     *string
		missing string
	}{
		{&p.Socket, cniwire.Socket}, {&p.Checkpoint, netnames.CheckpointFile}, {&p.Records, DefaultRecords},
		{&p.LegacySocket, cniwire.GRPCSocket}, {&p.PolicySocket, cniwire.PolicySocket},
	} {
		if *path.set == "" {
			*path.set = path.missing
		}
	}
	return p.dispatch()
}

// command is one run of a verb other than VERSION, with its input.
type command struct {
	*Process
	request
	conf netconf.NetConf
	pod  podArgs
	log  *pluginlog.Log

	legacy bool // upstream's daemon has answered
}
