package skel

import (
	"errors"
	"io"
	"strings"

	"cnictl/daemon/api/cause"
	"cnictl/plugin/netconf"
)

// Process is the environment of one plugin run. All fields are required.
type Process struct {
	Getenv func(string) string
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
}

// Plugin is the part that differs between plugins. All fields are required.
type Plugin struct {
	About string // first line of the output when run without CNI_COMMAND

	// Parse reads the parts of the configuration that every verb needs. An error is a
	// *netconf.Error; those of the kind BadSettings are left to the verbs.
	Parse func(stdin []byte) (name, version string, err error)

	Add, Check, Del, GC, Status func(*Request) *Error

	// ChecksNetns means that Add and Del call OwnNetns themselves, early enough: after an
	// ADD the process may have a thread in the pod's namespace.
	ChecksNetns bool
}

// Run executes the command in CNI_COMMAND and returns the exit code of the process.
func Run(p *Process, plugin *Plugin) int {
	if err := dispatch(p, plugin); err != nil {
		_, _ = p.Stdout.Write(err.JSON())
		return 1
	}
	return 0
}

func dispatch(p *Process, plugin *Plugin) *Error {
	if p.Getenv("CNI_COMMAND") == "" {
		_, _ = io.WriteString(p.Stderr, plugin.About+"\nCNI protocol versions supported: "+strings.Join(versions[:], ", ")+"\n")
		return nil
	}
	r, failure := readRequest(p.Getenv, p.Stdin)
	if failure != nil {
		return failure
	}
	if r.Command == "VERSION" {
		if _, err := io.WriteString(p.Stdout, versionJSON); err != nil {
			return &Error{Code: CodeIO, Msg: err.Error(), Cause: cause.Internal}
		}
		return nil
	}
	name, version, err := plugin.Parse(r.Stdin)
	if failure := configError(r.Command, name, err); failure != nil {
		return failure
	}
	r.Version = version
	if version == "" {
		r.Version = OldestVersion
	}
	return plugin.verb(r)
}

func (plugin *Plugin) verb(r *Request) *Error {
	run, since := plugin.Add, ""
	switch r.Command {
	case "ADD":
	case "DEL":
		run = plugin.Del
	case "CHECK":
		run, since = plugin.Check, "0.4.0"
	case "GC":
		run, since = plugin.GC, "1.1.0"
	case "STATUS":
		run, since = plugin.Status, "1.1.0"
	default:
		return unknownCommand(r.Command)
	}
	failure := checkVersion(r.Version)
	if since != "" {
		failure = checkVerbVersion(r.Command, r.Version, since)
	}
	if failure == nil {
		failure = run(r)
	}
	if failure == nil && !plugin.ChecksNetns && (r.Command == "ADD" || r.Command == "DEL") {
		failure = r.OwnNetns()
	}
	return failure
}

func unknownCommand(command string) *Error {
	return &Error{Code: CodeBadEnvironment, Msg: "unknown CNI_COMMAND: " + command, Cause: cause.InvalidRequest}
}

// configError returns those parse errors that concern every command.
func configError(command, network string, err error) *Error {
	var bad *netconf.Error
	if !errors.As(err, &bad) {
		return nil
	}
	switch bad.Kind {
	case netconf.NotJSON:
		return &Error{Code: CodeDecoding, Msg: bad.Error(), Cause: cause.InvalidConfig, Details: SettingDetails(bad)}
	case netconf.NoName:
		return &Error{Code: CodeBadConfig, Msg: bad.Error(), Cause: cause.InvalidConfig}
	case netconf.BadName:
		return &Error{Code: CodeBadConfig, Msg: bad.Error(), Cause: cause.InvalidConfig, Details: network}
	case netconf.BadVersion:
		if verbOf(command) == 0 {
			return unknownCommand(command)
		}
		return &Error{Code: CodeDecoding, Msg: bad.Error(), Cause: cause.InvalidConfig, Details: SettingDetails(bad)}
	}
	return nil
}
