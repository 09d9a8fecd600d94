package introspect

import (
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// recorded reports whether an address is or was assigned to a pod. Up to v1.8 the document
// also lists addresses that never were.
func (a wireAddress) recorded() bool {
	return a.IPAMKey != IPAMKey{} || a.IPAMMetadata != IPAMMetadata{} ||
		a.AssignedTime != "" && !isZero(a.AssignedTime) || a.UnassignedTime != "" && !isZero(a.UnassignedTime)
}

func isZero(text string) bool {
	at, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && at.IsZero()
}

func (a wireAddress) node(addr netip.Addr) (NodeAddress, error) {
	m := a.IPAMMetadata
	if len(m.PodName) > maxName || len(m.PodNamespace) > maxName {
		return NodeAddress{}, errors.New("a pod name longer than Kubernetes allows")
	}
	n := NodeAddress{Address: addr, State: AddressFree, PodNamespace: m.PodNamespace, PodName: m.PodName}
	var err error
	if n.AssignedAt, err = parseTime(a.AssignedTime); err != nil {
		return NodeAddress{}, fmt.Errorf("AssignedTime: %w", err)
	}
	if n.UnassignedAt, err = parseTime(a.UnassignedTime); err != nil {
		return NodeAddress{}, fmt.Errorf("UnassignedTime: %w", err)
	}
	// The container id and the interface name are blank since v1.23.0; the pod's name is
	// missing before v1.11.
	if a.IPAMKey != (IPAMKey{}) || m.PodName != "" {
		n.State = AddressAssigned
		n.UnassignedAt = nil
	}
	return n, nil
}

// parseTime reads a time. A missing or zero time is unknown.
func parseTime(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fmt.Errorf("%.40q is not a time", text)
	}
	return known(at), nil
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
