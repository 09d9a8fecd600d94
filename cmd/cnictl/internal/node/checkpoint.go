package node

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/output"
	"cnictl/cmd/cnictl/internal/paint"
	"cnictl/cmd/cnictl/internal/table"
	"cnictl/daemon/api/checkpoint"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet"
	"cnictl/daemon/fleet/document"
	"cnictl/tui/show"
)

// maxCheckpoint bounds the file: 5,000 allocations take 2 MB.
const maxCheckpoint = 64 << 20

// Checkpoint lists the allocations that a node's daemon holds, which it also writes to its
// checkpoint. With a file it lists those in the file.
func Checkpoint(ctx context.Context, f *cli.Factory, opts *Options) error {
	var doc document.NodeCheckpoint
	var err error
	if opts.File != "" {
		doc, err = checkpointOfFile(opts.File)
	} else {
		doc, err = checkpointOfDaemon(ctx, f, opts)
	}
	if err != nil {
		return err
	}
	doc.Items = slices.DeleteFunc(doc.Items, func(i document.CheckpointItem) bool { return !f.Globals.Kube.Shows(i.PodNamespace) })
	if doc.SampledAt.IsZero() {
		doc.SampledAt = f.Now().UTC()
	}
	if output.Structured(f) {
		err = output.PrintDocument(f, doc, false)
	} else {
		err = output.PrintTable(f, checkpointTable(doc, opts.File != "" || output.Wide(f)))
	}
	if err == nil && doc.Problem != "" {
		f.Warn("%s: %s", doc.Source, doc.Problem)
		return cli.Exit(cli.ExitFailure)
	}
	return err
}

func checkpointOfDaemon(ctx context.Context, f *cli.Factory, opts *Options) (document.NodeCheckpoint, error) {
	n, err := read(ctx, f, opts, fleet.Query{ENIs: true})
	if err != nil {
		return document.NodeCheckpoint{}, err
	}
	doc := newCheckpoint(n.Metadata.Name, document.CheckpointDaemon)
	doc.Partial, doc.Errors = n.Error != nil, errorsOf(n)
	if n.SampledAt != nil {
		doc.SampledAt = *n.SampledAt
	}
	for _, e := range n.ENIs {
		for _, c := range e.CIDRs {
			for _, a := range c.Addresses {
				if a.State == introspect.AddressAssigned {
					doc.Items = append(doc.Items, document.CheckpointItem{
						Address: a.Address, PodNamespace: a.PodNamespace, PodName: a.PodName, AllocatedAt: a.AssignedAt,
					})
				}
			}
		}
	}
	sortCheckpoint(doc.Items)
	return doc, nil
}

func newCheckpoint(node, source string) document.NodeCheckpoint {
	return document.NodeCheckpoint{
		APIVersion: introspect.APIVersion, Kind: document.KindCheckpoint, Node: node, Source: source, Items: []document.CheckpointItem{},
		Errors: []document.NodeError{},
	}
}

// checkpointOfFile reads a checkpoint. For a damaged one it returns whatever is readable, and
// the damage.
func checkpointOfFile(path string) (document.NodeCheckpoint, error) {
	data, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return document.NodeCheckpoint{},
			&cli.Error{Code: cli.ExitUnreachable, What: path + " could not be read", Why: "permission denied: only root can read it",
				Do: "sudo cnictl local checkpoint --file " + path}
	case errors.Is(err, fs.ErrNotExist):
		return document.NodeCheckpoint{},
			&cli.Error{Code: cli.ExitNotFound, What: path + " does not exist", Why: "no daemon has written a checkpoint there"}
	case err != nil:
		return document.NodeCheckpoint{}, &cli.Error{Code: cli.ExitUnreachable, What: path + " could not be read", Why: err.Error()}
	}
	return decodeCheckpoint(path, data), nil
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(file, maxCheckpoint+1)); err != nil {
		return nil, err
	}
	if b.Len() > maxCheckpoint {
		return nil, fmt.Errorf("it is larger than %d bytes", maxCheckpoint)
	}
	return b.Bytes(), nil
}

func decodeCheckpoint(path string, data []byte) document.NodeCheckpoint {
	doc := newCheckpoint("", path)
	entries, err := checkpoint.Decode(data)
	if err != nil {
		entries = checkpoint.Salvage(data)
		doc.Problem = fmt.Sprintf("%v; %d allocations were readable", err, len(entries))
	}
	for _, e := range entries {
		item := document.CheckpointItem{
			Address: e.Address(), PodNamespace: e.PodNamespace, PodName: e.PodName, IfName: e.IfName, Network: e.NetworkName,
			Interfaces: e.Interfaces,
		}
		if e.IPv4.IsValid() {
			item.IPv6 = e.IPv6
		}
		if !e.AllocatedAt.IsZero() {
			at := e.AllocatedAt.UTC()
			item.AllocatedAt = &at
		}
		doc.Items = append(doc.Items, item)
	}
	sortCheckpoint(doc.Items)
	return doc
}

func sortCheckpoint(items []document.CheckpointItem) {
	slices.SortStableFunc(items, func(a, b document.CheckpointItem) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.PodNamespace, b.PodNamespace), cmp.Compare(a.PodName, b.PodName))
	})
}

func checkpointTable(doc document.NodeCheckpoint, wide bool) table.Table {
	t := table.Table{Columns: []table.Column{{Name: "ADDRESS"}, {Name: "FOR", Unit: "SECONDS", Right: true}, {Name: "POD", Free: true}}}
	if wide {
		t.Columns = append(t.Columns, table.Column{Name: "IFNAME"}, table.Column{Name: "NETWORK"}, table.Column{Name: "INTERFACES", Right: true})
	}
	for _, i := range doc.Items {
		address := i.Address.String()
		if i.IPv6.IsValid() {
			address += "," + i.IPv6.String()
		}
		row := []table.Cell{{Text: address}, since(i.AllocatedAt, doc.SampledAt), {Text: podName(i.PodNamespace, i.PodName)}}
		if wide {
			interfaces := show.Unknown
			if i.Interfaces > 0 {
				interfaces = show.Count(i.Interfaces)
			}
			row = append(row, table.Cells(show.OrUnknown(i.IfName), show.OrUnknown(i.Network), interfaces)...)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// since formats how long ago something happened.
func since(at *time.Time, now time.Time) table.Cell {
	c := table.Cell{Text: show.Since(at, now), Class: paint.Dim}
	if c.Text != show.Unknown {
		c.Plain = strconv.Itoa(int(now.Sub(*at).Seconds()))
	}
	return c
}

// podName returns NAMESPACE/NAME, or unknown without a name.
func podName(namespace, name string) string {
	if name == "" {
		return show.Unknown
	}
	return namespace + "/" + name
}
