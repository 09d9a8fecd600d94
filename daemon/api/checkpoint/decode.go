package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"cnictl/daemon/api/netnames"
)

// file is the document. Entries are decoded one by one so that an error can name the bad
// one.
type file struct {
	Version     *string           `json:"version"`
	Allocations []json.RawMessage `json:"allocations"`
}

type rawEntry struct {
	NetworkName         string `json:"networkName"`
	ContainerID         string `json:"containerID"`
	IfName              string `json:"ifName"`
	IPv4                string `json:"ipv4"`
	IPv6                string `json:"ipv6"`
	AllocationTimestamp int64  `json:"allocationTimestamp"` // ns since 1970
	Metadata            struct {
		PodNamespace string `json:"k8sPodNamespace"`
		PodName      string `json:"k8sPodName"`
		Interfaces   int    `json:"interfacesCount"`
	} `json:"metadata"`
}

// Decode reads a file. An error is always a *FormatError, and comes without entries;
// [Salvage] recovers what it can from such a file.
func Decode(data []byte) ([]Entry, error) {
	var f file
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&f); err != nil {
		return nil, documentError(err)
	}
	if err := f.checkVersion(); err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(f.Allocations))
	for i, raw := range f.Allocations {
		e, err := decodeEntry(raw)
		if err != nil {
			err.Entry = i
			return nil, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func (f *file) checkVersion() error {
	switch {
	case f.Version == nil:
		return &FormatError{Problem: Foreign, Entry: -1}
	case *f.Version != netnames.CheckpointVersion:
		return &FormatError{Problem: WrongVersion, Version: *f.Version, Entry: -1}
	}
	return nil
}

func decodeEntry(raw []byte) (Entry, *FormatError) {
	var r rawEntry
	if err := json.Unmarshal(raw, &r); err != nil {
		bad := &FormatError{Problem: BadEntry, Field: "entry", Err: err}
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
			bad.Field = wrong.Field
		}
		return Entry{}, bad
	}
	e := Entry{
		NetworkName:  r.NetworkName,
		ContainerID:  r.ContainerID,
		IfName:       r.IfName,
		PodNamespace: r.Metadata.PodNamespace,
		PodName:      r.Metadata.PodName,
		Interfaces:   r.Metadata.Interfaces,
	}
	if r.AllocationTimestamp != 0 {
		e.AllocatedAt = time.Unix(0, r.AllocationTimestamp).UTC()
	}
	var err error
	if e.IPv4, err = parseAddress(r.IPv4, netip.Addr.Is4); err != nil {
		return Entry{}, &FormatError{Problem: BadEntry, Field: "ipv4", Err: err}
	}
	if e.IPv6, err = parseAddress(r.IPv6, netip.Addr.Is6); err != nil {
		return Entry{}, &FormatError{Problem: BadEntry, Field: "ipv6", Err: err}
	}
	if !e.Address().IsValid() {
		return Entry{}, &FormatError{Problem: BadEntry, Field: "ipv4", Err: errors.New("neither ipv4 nor ipv6 is there")}
	}
	return e, nil
}

func parseAddress(s string, family func(netip.Addr) bool) (netip.Addr, error) {
	if s == "" {
		return netip.Addr{}, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Addr{}, err
	}
	if a = a.Unmap(); !family(a) || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is of the other family or has a zone", s)
	}
	return a, nil
}

// Salvage returns the readable entries of a file that Decode refuses: those before the
// place where it was cut off or overwritten, except entries that are invalid themselves. A
// file of another version or kind yields none. The result is a hint, to be checked against
// the node.
func Salvage(data []byte) []Entry {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var entries []Entry
	version := ""
	for d.More() {
		key, err := d.Token()
		if err != nil {
			break
		}
		if key == "allocations" {
			more, whole := salvageList(d)
			entries = append(entries, more...)
			if !whole {
				break
			}
			continue
		}
		var value any
		if d.Decode(&value) != nil {
			break
		}
		if key == "version" {
			version, _ = value.(string)
		}
	}
	if version != netnames.CheckpointVersion {
		return nil
	}
	return entries
}

func salvageList(d *json.Decoder) (entries []Entry, whole bool) {
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return nil, false
	}
	for d.More() {
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return entries, false
		}
		if e, bad := decodeEntry(raw); bad == nil {
			entries = append(entries, e)
		}
	}
	_, err := d.Token()
	return entries, err == nil
}

// documentError explains why the document as a whole is not JSON of the expected shape.
func documentError(err error) error {
	f := &FormatError{Problem: NotJSON, Entry: -1, Err: err}
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF):
		f.Problem = Empty
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.Problem = Truncated
	case errors.As(err, &wrong):
		f.Problem = Foreign
	case errors.As(err, &syntax):
		f.Offset = syntax.Offset
	}
	return f
}
