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

// Target is a node and the way to it.
type Target struct {
	Name    string
	Address string // unix:/path, host:port or http://host:port; with Dial a label

	// Dial connects to its introspection server; nil: Address is dialled.
	Dial func(ctx context.Context) (net.Conn, error)
	Via  string // what Dial goes through, one of introspect.Via*; "" without Dial: direct

	// Key names what runs there, as the UID of a pod does: what was learned of its
	// features holds for as long as the key does.
	Key string

	// Metrics reads the text of its metrics, at most once a sample and only when
	// introspection cannot be read; nil: there is no way to them.
	Metrics func(ctx context.Context) ([]byte, error)

	Object *document.NodeObject // what Kubernetes knows of it; nil: it was not asked

	// Sample is what a recording has of it, which is all that can be read; nil: it is no
	// recording.
	Sample *document.NodeIPAM

	// Absent is why there is no use in asking it; State then says which kind of
	// absence that is, unreachable when it is "".
	Absent *document.NodeError
	State  document.State
}

// maxName is the longest name of a Kubernetes node (RFC 1123).
const maxName = 253

// ParseTargets reads NAME=ADDRESS items; a bare address is its own name.
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
