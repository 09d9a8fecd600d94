package portmap

import (
	"io"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/netnames"
	"cnictl/plugin/netconf"
	"cnictl/plugin/skel"
)

// Reference is the name of the reference plugin, in our plugin's directory.
const Reference = "portmap.reference"

// maxStdin limits the input that is read to determine whether there is anything to do.
const maxStdin = 16 << 20

// Process is the environment of one run. All fields are required.
type Process struct {
	Getenv func(string) string
	Stdin  io.Reader
	Stdout io.Writer

	// Exec replaces the process with the reference plugin. stdin is its standard input,
	// nil for the process's own. Exec returns only on failure.
	Exec func(stdin []byte) error
}

// Run executes the command in CNI_COMMAND and returns the exit code of the process.
func (p *Process) Run() int {
	command := p.Getenv("CNI_COMMAND")
	if command != "ADD" && command != "DEL" {
		return p.handOver(nil)
	}
	stdin, err := io.ReadAll(io.LimitReader(p.Stdin, maxStdin+1))
	if err != nil {
		return p.fail("error reading from stdin: "+err.Error(), skel.CodeIO)
	}
	result, idle := p.answer(command, stdin)
	if !idle {
		return p.handOver(stdin)
	}
	if _, err := p.Stdout.Write(result); err != nil {
		return p.fail("write result: "+err.Error(), skel.CodeIO)
	}
	return 0
}

// answer returns the result of a plugin that has nothing to do. idle is false if there is
// something to do or the input is not beyond doubt.
func (p *Process) answer(command string, stdin []byte) (result []byte, idle bool) {
	ifName := p.Getenv("CNI_IFNAME")
	if ifName == "" || !skel.ValidInterfaceName(ifName) || !netnames.ValidName(p.Getenv("CNI_CONTAINERID")) || p.Getenv("CNI_PATH") == "" {
		return nil, false
	}
	conf := netconf.ParsePortmap(stdin)
	if !conf.Idle || len(stdin) > maxStdin {
		return nil, false
	}
	if command == "DEL" && len(conf.RawPrevResult) == 0 {
		return nil, true
	}
	// A result that the reference plugin cannot read fails its DEL too.
	prev, err := netconf.ParseResult(conf.RawPrevResult, conf.CNIVersion)
	switch {
	case err != nil:
		return nil, false
	case command == "DEL":
		return nil, true
	case p.Getenv("CNI_NETNS") == "":
		return nil, false
	}
	return skel.PrintResult(prev, conf.CNIVersion), true
}

func (p *Process) handOver(stdin []byte) int {
	err := p.Exec(stdin)
	return p.fail("run the reference plugin "+Reference+", which aws-vpc-cni-init installs next to portmap: "+err.Error(), skel.CodeInternal)
}

func (p *Process) fail(msg string, code int) int {
	_, _ = p.Stdout.Write((&skel.Error{Code: code, Msg: "portmap: " + msg, Cause: cause.Internal}).JSON())
	return 1
}
