package capacity

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cnictl/capacity/limits"
	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/daemon/api/introspect"
	"cnictl/daemon/fleet/document"
)

// Bounds of the cache; a region has some 1,400 types.
const (
	maxCache = 8 << 20 // bytes
	maxTypes = 10_000
)

// knownTypes are the instance types known to commands: the built-in table, overridden by what
// "capacity refresh" cached.
type knownTypes struct {
	limits.Table
	at time.Time // when EC2 was read; zero without a cache
}

// lookup finds an instance type; its error names similar ones.
func (k knownTypes) lookup(name string) (limits.Instance, error) {
	i, known := k.Lookup(name)
	if known {
		return i, nil
	}
	e := &cli.Error{Code: cli.ExitNotFound, What: fmt.Sprintf("unknown instance type %q", name)}
	if near := k.Nearest(name, 3); len(near) > 0 {
		e.Do = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return i, e
}

// tableOf returns the known types. It warns about a cache that cannot be used, and ignores
// it.
func tableOf(f *cli.Factory) knownTypes {
	known, err := readCache(f)
	if err != nil {
		f.Warn("ignoring the cached instance types: %s; replace them with %s capacity refresh --aws", err, f.Name)
	}
	return known
}

// cacheFile is where refresh stores its document; "" if no cache directory is known.
func cacheFile(f *cli.Factory) string {
	if dir := f.CacheDir(); dir != "" {
		return filepath.Join(dir, "instance-types.json")
	}
	return ""
}

func readCache(f *cli.Factory) (knownTypes, error) {
	file := cacheFile(f)
	if file == "" {
		return knownTypes{}, nil
	}
	info, err := os.Stat(file) // check first: opening a pipe would block until it has a writer
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return knownTypes{}, nil
	case err != nil:
		return knownTypes{}, err
	case !info.Mode().IsRegular():
		return knownTypes{}, fmt.Errorf("%s is not a regular file", file)
	}
	in, err := os.Open(file)
	if err != nil {
		return knownTypes{}, err
	}
	defer in.Close()
	text, err := io.ReadAll(io.LimitReader(in, maxCache+1))
	if err != nil {
		return knownTypes{}, err
	}
	known, err := parseCache(text)
	if err != nil {
		return knownTypes{}, fmt.Errorf("%s: %w", file, err)
	}
	return known, nil
}

// parseCache parses a document of refresh.
func parseCache(text []byte) (knownTypes, error) {
	if len(text) > maxCache {
		return knownTypes{}, fmt.Errorf("larger than %d MiB", maxCache>>20)
	}
	var doc document.CapacityRefresh
	if err := json.Unmarshal(text, &doc); err != nil {
		return knownTypes{}, errors.New("not a document of capacity refresh")
	}
	read := doc.SampledAt.UTC().Format(time.DateOnly)
	switch {
	case doc.Kind != document.KindCapacityRefresh || doc.APIVersion != introspect.APIVersion:
		return knownTypes{},
			fmt.Errorf("%.40q %.40q is not a %s %s", doc.APIVersion, doc.Kind, introspect.APIVersion, document.KindCapacityRefresh)
	case len(doc.Items) > maxTypes:
		return knownTypes{}, fmt.Errorf("%d instance types: want at most %d", len(doc.Items), maxTypes)
	case read < limits.Date:
		return knownTypes{}, fmt.Errorf("read on %s, before the built-in table of %s", read, limits.Date)
	}
	types := make([]limits.Instance, 0, len(doc.Items))
	for _, item := range doc.Items {
		i := instanceOf(item)
		if err := i.Check(); err != nil {
			return knownTypes{}, err
		}
		types = append(types, i)
	}
	return knownTypes{limits.With(types), doc.SampledAt}, nil
}

// factsOf returns the document of a type; instanceOf is the reverse.
func factsOf(i limits.Instance) document.CapacityFacts {
	built, known := limits.Lookup(i.Type)
	out := document.CapacityFacts{
		InstanceType: i.Type, New: !known, ENIs: i.MaxENIs, NetworkCards: []document.CapacityCard{}, DefaultNetworkCard: i.DefaultCard,
		IPv4PerENI: i.IPv4PerENI, Hypervisor: i.Hypervisor, BareMetal: i.BareMetal, VCPUs: known0(i.VCPUs), MemoryMiB: known0(i.MemoryMiB),
		Arch:    i.Arch,
		Changes: []document.CapacityChange{},
	}
	if i.IPv6PerENI >= 0 {
		out.IPv6PerENI = &i.IPv6PerENI
	}
	for _, c := range i.Cards {
		out.NetworkCards = append(out.NetworkCards, document.CapacityCard{Index: c.Index, ENIs: c.MaxENIs})
	}
	if !known {
		return out
	}
	for n, was := range built.Facts() {
		if is := i.Facts()[n]; is != was {
			out.Changes = append(out.Changes, document.CapacityChange{Name: is.Name, From: was.Value, To: is.Value})
		}
	}
	return out
}

func instanceOf(item document.CapacityFacts) limits.Instance {
	i := limits.Instance{
		Type: item.InstanceType, MaxENIs: item.ENIs, IPv4PerENI: item.IPv4PerENI, IPv6PerENI: -1, Hypervisor: item.Hypervisor,
		BareMetal: item.BareMetal, DefaultCard: item.DefaultNetworkCard, Arch: item.Arch,
	}
	for to, from := range map[*int]*int{&i.IPv6PerENI: item.IPv6PerENI, &i.VCPUs: item.VCPUs, &i.MemoryMiB: item.MemoryMiB} {
		if from != nil {
			*to = *from
		}
	}
	for _, c := range item.NetworkCards {
		i.Cards = append(i.Cards, limits.Card{Index: c.Index, MaxENIs: c.ENIs})
	}
	return i
}
