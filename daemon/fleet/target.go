package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	"cnictl/daemon/api/introspect/client"
	"cnictl/daemon/fleet/document"
)

// Target is a node and how to reach it.
type Target struct {
	Name    string
	Address string // unix:/path, host:port or http://host:port; only a label if Dial is set

	// Dial connects to its introspection server; if nil, Address is dialled.
	Dial func(ctx context.Context) (net.Conn, error)
	Via  string // what Dial goes through, one of introspect.Via*; "" if direct

	// Key identifies what runs there, like the UID of a pod: learned features stay valid as
	// long as the key does.
	Key string

	// Metrics reads the text of its metrics, at most once per sample and only if introspection
	// cannot be read; nil if there is no way to read them.
	Metrics func(ctx context.Context) ([]byte, error)

	Object *document.NodeObject // what Kubernetes knows about it; nil if it was not asked

	// Env holds those of PoolSettings that its daemon's pod sets: upstream's daemon does not
	// report them all. nil if they are unknown.
	Env map[string]string

	// Sample is the recorded state, the only thing to read from a recording; nil if this is not
	// a recording.
	Sample *document.NodeIPAM

	// Absent says why asking it is pointless; State then gives the kind of absence, unreachable
	// if "".
	Absent *document.NodeError
	State  document.State
}

// maxName is the maximum length of a Kubernetes node name (RFC 1123).
const maxName = 253

// ParseTargets parses NAME=ADDRESS items; a bare address is also the name.
func ParseTargets(items []string) ([]Target, error) {
	var targets []Target
	seen := map[string]bool{}
	for _, item := range items {
		t, err := parseTarget(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		if seen[t.Name] {
			return nil, fmt.Errorf("target %q is given twice", t.Name)
		}
		seen[t.Name] = true
		targets = append(targets, t)
	}
	return targets, nil
}

func parseTarget(item string) (Target, error) {
	name, address, named := strings.Cut(item, "=")
	if !named {
		address = item
		name = strings.TrimPrefix(item, "http://")
		if sock, ok := strings.CutPrefix(item, "unix:"); ok {
			name = strings.TrimSuffix(path.Base(sock), ".sock")
		}
	}
	if err := client.CheckAddress(address); err != nil {
		return Target{}, fmt.Errorf("target %q: %w", item, err)
	}
	if err := checkName(name); err != nil {
		return Target{}, fmt.Errorf("target %q: %w", item, err)
	}
	return Target{Name: name, Address: address}, nil
}

func checkName(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("expected a name of 1 to %d bytes before =", maxName)
	}
	for _, r := range name {
		if !strconv.IsPrint(r) || r == ' ' {
			return errors.New("its name contains a space or an unprintable character")
		}
	}
	return nil
}
