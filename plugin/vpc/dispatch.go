package vpc

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/rtnl"
	"cnictl/plugin/netconf"
)

// request is the environment of a command.
type request struct {
	command       string
	containerID   string
	netns         string
	ifName        string
	args          string
	path          string
	netnsOverride string
	stdin         []byte
}

// Verbs as a set.
const (
	verbAdd = 1 << iota
	verbCheck
	verbDel
	verbGC
	verbStatus
)

var verbs = [...]struct {
	name string
	bit  int
}{{"ADD", verbAdd}, {"CHECK", verbCheck}, {"DEL", verbDel}, {"GC", verbGC}, {"STATUS", verbStatus}}

func verbOf(command string) int {
	for _, v := range verbs {
		if v.name == command {
			return v.bit
		}
	}
	return 0
}

// dispatch checks the environment and the configuration in the order, and with the
// texts, of the CNI library, and runs the command.
func (p *Process) dispatch() *cniError {
	if p.Getenv("CNI_COMMAND") == "" {
		return p.about()
	}
	r, err := p.readRequest()
	if err != nil {
		return err
	}
	if r.command == "VERSION" {
		if _, err := io.WriteString(p.Stdout, versionJSON); err != nil {
			return &cniError{code: codeIO, msg: err.Error(), cause: cause.Internal}
		}
		return nil
	}
	conf, parseErr := netconf.Parse(r.stdin)
	if err := configError(conf.Name, parseErr); err != nil {
		return err
	}
	version := conf.CNIVersion
	if version == "" {
		version = oldestVersion
	}
	// What is wrong with our own settings comes after what is wrong with CNI's.
	var bad *netconf.Error
	errors.As(parseErr, &bad)
	if bad != nil && bad.Kind == netconf.BadVersion {
		if verbOf(r.command) == 0 {
			return unknownCommand(r.command)
		}
		return &cniError{code: codeDecoding, msg: bad.Error(), cause: cause.InvalidConfig, details: settingDetails(bad)}
	}
	c := &command{Process: p, request: r, conf: conf}
	switch r.command {
	case "ADD":
		if err := checkVersion(version); err != nil {
			return err
		}
		return c.add(version, parseErr)
	case "DEL":
		if err := checkVersion(version); err != nil {
			return err
		}
		return c.del(parseErr)
	case "CHECK":
		if err := checkVerbVersion("CHECK", version, "0.4.0"); err != nil {
			return err
		}
		return c.check(parseErr)
	case "GC", "STATUS":
		if err := checkVerbVersion(r.command, version, "1.1.0"); err != nil {
			return err
		}
		if r.command == "GC" {
			return c.gc(parseErr)
		}
		return c.status(parseErr)
	}
	return unknownCommand(r.command)
}

func unknownCommand(command string) *cniError {
	return &cniError{code: codeBadEnvironment, msg: "unknown CNI_COMMAND: " + command, cause: cause.InvalidRequest}
}

// about answers a run by hand.
func (p *Process) about() *cniError {
	_, _ = io.WriteString(p.Stderr, "AWS CNI "+p.Version+"\nCNI protocol versions supported: "+strings.Join(versions[:], ", ")+"\n")
	return nil
}

// configError is the part of a parse error that concerns every command.
func configError(network string, err error) *cniError {
	var bad *netconf.Error
	if !errors.As(err, &bad) {
		return nil
	}
	switch bad.Kind {
	case netconf.NotJSON:
		return &cniError{code: codeDecoding, msg: bad.Error(), cause: cause.InvalidConfig, details: settingDetails(bad)}
	case netconf.NoName:
		return &cniError{code: codeBadConfig, msg: bad.Error(), cause: cause.InvalidConfig}
	case netconf.BadName:
		return &cniError{code: codeBadConfig, msg: bad.Error(), cause: cause.InvalidConfig, details: network}
	}
	return nil
}

// readRequest reads the CNI_ variables and, but for VERSION, standard input.
func (p *Process) readRequest() (request, *cniError) {
	var r request
	table := [...]struct {
		name     string
		value    *string
		required int // verbs
		valid    func(string) *cniError
	}{
		{"CNI_COMMAND", &r.command, 0, nil},
		{"CNI_CONTAINERID", &r.containerID, verbAdd | verbCheck | verbDel, validContainerID},
		{"CNI_NETNS", &r.netns, verbAdd | verbCheck, nil},
		{"CNI_IFNAME", &r.ifName, verbAdd | verbCheck | verbDel, validInterfaceName},
		{"CNI_ARGS", &r.args, 0, nil},
		{"CNI_PATH", &r.path, verbAdd | verbCheck | verbDel | verbGC | verbStatus, nil},
		{"CNI_NETNS_OVERRIDE", &r.netnsOverride, 0, nil},
	}
	var missing []string
	for _, v := range table {
		*v.value = p.Getenv(v.name)
		switch required := v.required&verbOf(r.command) != 0; {
		case !required:
		case *v.value == "":
			missing = append(missing, v.name)
		case v.valid != nil:
			if err := v.valid(*v.value); err != nil {
				return r, err
			}
		}
	}
	if len(missing) > 0 {
		return r, &cniError{code: codeBadEnvironment, msg: "required env variables [" + strings.Join(missing, ",") + "] missing", cause: cause.InvalidRequest}
	}
	if r.command == "VERSION" {
		return r, nil
	}
	stdin, err := io.ReadAll(io.LimitReader(p.Stdin, maxStdin+1))
	if err != nil {
		return r, &cniError{code: codeIO, msg: "error reading from stdin: " + err.Error(), cause: cause.Internal}
	}
	if len(stdin) > maxStdin {
		return r, &cniError{code: codeIO, msg: "error reading from stdin: more than 16 MiB", cause: cause.InvalidConfig,
			details: "the network configuration is a few KB, also with the previous result or a node's list of attachments"}
	}
	r.stdin = stdin
	return r, nil
}

// maxStdin bounds the memory that a caller gone wild can make a run take.
const maxStdin = 16 << 20

func validContainerID(id string) *cniError {
	if netconf.ValidName(id) {
		return nil
	}
	return &cniError{code: codeBadEnvironment, msg: "invalid characters in containerID", cause: cause.InvalidRequest, details: id}
}

// maxInterfaceName is the kernel's limit, IFNAMSIZ without the final NUL.
const maxInterfaceName = 15

func validInterfaceName(name string) *cniError {
	bad := func(msg, details string) *cniError {
		return &cniError{code: codeBadEnvironment, msg: msg, cause: cause.InvalidRequest, details: details}
	}
	switch {
	case len(name) > maxInterfaceName:
		return bad("interface name is too long", "interface name should be less than "+strconv.Itoa(maxInterfaceName+1)+" characters")
	case name == "." || name == "..":
		return bad("interface name is . or ..", "")
	}
	for _, r := range name {
		if r == '/' || r == ':' || unicode.IsSpace(r) {
			return bad("interface name contains / or : or whitespace characters", "")
		}
	}
	return nil
}

// overridden reports whether the runtime allows CNI_NETNS to be the plugin's own
// namespace.
func (r *request) overridden() bool {
	return r.netnsOverride == "1" || strings.EqualFold(r.netnsOverride, "TRUE")
}

func errOwnNetns() *cniError {
	return &cniError{code: codeBadNetns, msg: "plugin's netns and netns from CNI_NETNS should not be the same", cause: cause.InvalidRequest}
}

// isOwnNetns compares a namespace by path with the process's; false when there is
// nothing at the path. Asking a socket of ours is ten times quicker than procfs.
func isOwnNetns(path string) bool {
	ns, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(ns)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	same, err := rtnl.SameNetns(fd, ns)
	return err == nil && same
}
