package local

import (
	"context"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet"
)

const (
	// DefaultSocket is where a daemon that uses a socket listens, by our convention.
	DefaultSocket = "/var/run/aws-node/introspection.sock"
	// DefaultAddress is where upstream listens.
	DefaultAddress = "127.0.0.1:61679"
	// runDir exists on every node that runs aws-node.
	runDir = "/var/run/aws-node"
	// probeTimeout bounds the probe of the loopback port, which responds at once or not at
	// all.
	probeTimeout = 200 * time.Millisecond
)

// Host is what Target examines.
type Host struct {
	Env  cli.Lookup
	Name string // the host's
	Stat func(string) (fs.FileInfo, error)
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// SystemHost is the real host.
func SystemHost(env cli.Lookup) Host {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "local"
	}
	return Host{Env: env, Name: name, Stat: os.Stat, Dial: new(net.Dialer).DialContext}
}

// Target returns this host's introspection server; ok reports whether the host looks like a
// node.
func (h Host) Target(ctx context.Context) (_ fleet.Target, ok bool) {
	address := DefaultAddress
	if bind, _ := h.Env("INTROSPECTION_BIND_ADDRESS"); bind != "" {
		if bind = reachable(bind); client.CheckAddress(bind) == nil {
			return fleet.Target{Name: h.Name, Address: bind, Metrics: Metrics}, true
		}
	}
	if info, err := h.Stat(DefaultSocket); err == nil && info.Mode().Type() == fs.ModeSocket {
		return fleet.Target{Name: h.Name, Address: "unix:" + DefaultSocket, Metrics: Metrics}, true
	}
	if _, err := h.Stat(runDir); err == nil {
		return fleet.Target{Name: h.Name, Address: address, Metrics: Metrics}, true
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := h.Dial(ctx, "tcp", address)
	if err == nil {
		// All that matters is that the connection opens.
		_ = conn.Close()
	}
	return fleet.Target{Name: h.Name, Address: address, Metrics: Metrics}, err == nil
}

// reachable turns a listen address into one to connect to: listening on all addresses
// includes the loopback one.
func reachable(bind string) string {
	if strings.HasPrefix(bind, "unix:") {
		return bind
	}
	host, port, err := net.SplitHostPort(bind)
	if err != nil {
		return bind
	}
	switch host {
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
