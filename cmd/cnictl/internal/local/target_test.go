package local

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"testing"
	"testing/fstest"
)

func TestTarget(t *testing.T) {
	t.Parallel()
	socket := fstest.MapFS{"var/run/aws-node/introspection.sock": {Mode: fs.ModeSocket}}
	plainFile := fstest.MapFS{"var/run/aws-node/introspection.sock": {}}
	dir := fstest.MapFS{"var/run/aws-node/ipam.json": {}}
	tests := map[string]struct {
		bind      string
		files     fstest.MapFS
		listening bool
		address   string
		node      bool
	}{
		"nothing":              {"", nil, false, "127.0.0.1:61679", false},
		"loopback port":        {"", nil, true, "127.0.0.1:61679", true},
		"directory":            {"", dir, false, "127.0.0.1:61679", true},
		"socket":               {"", socket, true, "unix:/var/run/aws-node/introspection.sock", true},
		"no socket but a file": {"", plainFile, false, "127.0.0.1:61679", true},
		"set to a socket":      {"unix:/run/x.sock", socket, false, "unix:/run/x.sock", true},
		"set to a port":        {"127.0.0.1:7000", socket, false, "127.0.0.1:7000", true},
		"set to all addresses": {":7000", nil, false, "127.0.0.1:7000", true},
		"set to 0.0.0.0":       {"0.0.0.0:7000", nil, false, "127.0.0.1:7000", true},
		"set to [::]":          {"[::]:7000", nil, false, "[::1]:7000", true},
		"set to nonsense":      {"7000", nil, false, "127.0.0.1:61679", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Host{
				Env: func(name string) (string, bool) {
					return tt.bind, name == "INTROSPECTION_BIND_ADDRESS" && tt.bind != ""
				},
				Name: "host-1",
				Stat: func(path string) (fs.FileInfo, error) { return fs.Stat(tt.files, path[1:]) },
				Dial: func(context.Context, string, string) (net.Conn, error) {
					if !tt.listening {
						return nil, errors.New("refused")
					}
					a, b := net.Pipe()
					return a, b.Close()
				},
			}
			got, ok := h.Target(t.Context())
			if got.Name != "host-1" || got.Address != tt.address || ok != tt.node {
				t.Errorf("%+v, %v; want host-1 at %s, %v", got, ok, tt.address, tt.node)
			}
		})
	}
}
