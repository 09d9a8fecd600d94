package fleetsim

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
)

// ServeTargets serves the introspection of every node on a Unix socket in a directory until
// the fleet is closed, and returns the value for cnictl's --targets. Nodes that cannot be
// read have no socket.
func (s *Sim) ServeTargets(dir string) (string, error) {
	var out []string
	for _, n := range s.nodes {
		path := filepath.Join(dir, n.name+".sock")
		out = append(out, n.name+"=unix:"+path)
		if n.refuses(MetricsPort) != "" {
			continue
		}
		ln, err := new(net.ListenConfig).Listen(s.ctx, "unix", path)
		if err != nil {
			return "", fmt.Errorf("serve node %s: %w", n.name, err)
		}
		s.servers.Go(func() { s.serveSocket(ln, n) })
	}
	return strings.Join(out, ","), nil
}

func (s *Sim) serveSocket(ln net.Listener, n *node) {
	defer s.whenStopped(func() { _ = ln.Close() })()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		inner, err := s.streams.open(s.ctx, n, IntrospectionPort)
		if err != nil {
			_ = conn.Close()
			return
		}
		s.servers.Go(func() {
			defer s.whenStopped(func() { _ = conn.Close() })()
			join(conn, inner)
		})
	}
}
