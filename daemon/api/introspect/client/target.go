package client

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// endpoint is a parsed address of a node.
type endpoint struct {
	network, address string // for the dialer
	base             string // URL without a path
}

// anyNode is the URL host used when the connection is not made to an IP address.
const anyNode = "http://node"

// parseAddress reads unix:/path, host:port, or http://host[:port].
func parseAddress(s string) (endpoint, error) {
	bad := func(why string) (endpoint, error) {
		return endpoint{}, fmt.Errorf("address %q: %s; use unix:/path, host:port or http://host:port", s, why)
	}
	if path, ok := strings.CutPrefix(s, "unix:"); ok {
		switch {
		case !strings.HasPrefix(path, "/"):
			return bad("the socket path is not absolute")
		case len(path) > 107: // the capacity of a Linux socket address
			return bad("the socket path is longer than 107 bytes")
		case strings.ContainsRune(path, 0):
			return bad("the socket path contains a NUL byte")
		}
		return endpoint{"unix", path, anyNode}, nil
	}
	hostport := s
	if strings.Contains(s, "://") {
		u, err := url.Parse(s)
		if err != nil {
			return bad("not a URL")
		}
		if u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
			return bad("only http, a host and a port are expected")
		}
		if hostport = u.Host; u.Port() == "" {
			hostport = net.JoinHostPort(u.Hostname(), "80")
		}
	}
	host, port, err := net.SplitHostPort(hostport)
	if err != nil || host == "" || strings.ContainsAny(host, "/@?# \t\r\n\x00") {
		return bad("host and port are missing")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return bad("the port is not in 1–65535")
	}
	address := net.JoinHostPort(host, port)
	base := "http://" + strings.ReplaceAll(address, "%", "%25")
	if u, err := url.Parse(base); err != nil || u.Port() != port {
		return bad("invalid host")
	}
	return endpoint{"tcp", address, base}, nil
}

// CheckAddress reports whether New would accept an address.
func CheckAddress(s string) error {
	_, err := parseAddress(s)
	return err
}
