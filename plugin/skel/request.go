package skel

import (
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"cnictl/daemon/api/cause"
	"cnictl/daemon/api/netnames"
	"cnictl/daemon/rtnl"
)

// Request holds a command's environment variables and its input.
type Request struct {
	Command       string
	ContainerID   string
	Netns         string
	IfName        string
	Args          string
	Path          string
	NetnsOverride string
	Stdin         []byte
	Version       string // of the configuration, never empty
}

// The verbs, as a bit set.
const (
	verbAdd = 1 << iota
	verbCheck
	verbDel
	verbGC
	verbStatus
)

func verbOf(command string) int {
	for i, name := range [...]string{"ADD", "CHECK", "DEL", "GC", "STATUS"} {
		if name == command {
			return 1 << i
		}
	}
	return 0
}

// readRequest reads the CNI_ variables and, except for VERSION, standard input.
func readRequest(getenv func(string) string, stdin io.Reader) (*Request, *Error) {
	r := &Request{}
	table := [...]struct {
		name     string
		value    *string
		required int // verbs
		valid    func(string) *Error
	}{
		{"CNI_COMMAND", &r.Command, 0, nil},
		{"CNI_CONTAINERID", &r.ContainerID, verbAdd | verbCheck | verbDel, validContainerID},
		{"CNI_NETNS", &r.Netns, verbAdd | verbCheck, nil},
		{"CNI_IFNAME", &r.IfName, verbAdd | verbCheck | verbDel, validInterfaceName},
		{"CNI_ARGS", &r.Args, 0, nil},
		{"CNI_PATH", &r.Path, verbAdd | verbCheck | verbDel | verbGC | verbStatus, nil},
		{"CNI_NETNS_OVERRIDE", &r.NetnsOverride, 0, nil},
	}
	var missing []string
	for _, v := range table {
		*v.value = getenv(v.name)
		switch required := v.required&verbOf(r.Command) != 0; {
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
		return r, &Error{Code: CodeBadEnvironment, Msg: "required env variables [" + strings.Join(missing, ",") + "] missing", Cause: cause.InvalidRequest}
	}
	if r.Command == "VERSION" {
		return r, nil
	}
	in, err := io.ReadAll(io.LimitReader(stdin, maxStdin+1))
	if err != nil {
		return r, &Error{Code: CodeIO, Msg: "error reading from stdin: " + err.Error(), Cause: cause.Internal}
	}
	if len(in) > maxStdin {
		return r, &Error{Code: CodeIO, Msg: "error reading from stdin: more than 16 MiB", Cause: cause.InvalidConfig,
			Details: "the network configuration is a few KB, also with the previous result or a node's list of attachments"}
	}
	r.Stdin = in
	return r, nil
}

// maxStdin limits the memory that a runaway caller can make a run use.
const maxStdin = 16 << 20

func validContainerID(id string) *Error {
	if netnames.ValidName(id) {
		return nil
	}
	return &Error{Code: CodeBadEnvironment, Msg: "invalid characters in containerID", Cause: cause.InvalidRequest, Details: id}
}

// maxInterfaceName is the kernel's limit, IFNAMSIZ without the final NUL.
const maxInterfaceName = 15

// ValidInterfaceName reports whether the CNI library accepts name for an interface.
func ValidInterfaceName(name string) bool { return validInterfaceName(name) == nil }

func validInterfaceName(name string) *Error {
	bad := func(msg, details string) *Error {
		return &Error{Code: CodeBadEnvironment, Msg: msg, Cause: cause.InvalidRequest, Details: details}
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

// OwnNetns returns an error if the sandbox is the plugin's own namespace and the runtime
// does not allow that. It returns nil if the path does not exist.
func (r *Request) OwnNetns() *Error {
	if r.Netns == "" || r.Overridden() || !isOwnNetns(r.Netns) {
		return nil
	}
	return ErrOwnNetns()
}

// Overridden reports whether the runtime allows CNI_NETNS to be the plugin's own
// namespace.
func (r *Request) Overridden() bool {
	return r.NetnsOverride == "1" || strings.EqualFold(r.NetnsOverride, "TRUE")
}

// ErrOwnNetns is the error that OwnNetns returns.
func ErrOwnNetns() *Error {
	return &Error{Code: CodeBadNetns, Msg: "plugin's netns and netns from CNI_NETNS should not be the same", Cause: cause.InvalidRequest}
}

// isOwnNetns compares with the namespace of a new socket, which is ten times quicker than
// reading procfs.
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
